-- Admits a client that a worker knows, and returns true, where client, grants and roster are still as known. Otherwise
-- the rest of the transaction sees nothing, and the worker admits the client anew. What keep_sight has stored for the
-- grants is found in the same look, as it nearly always is. It runs as the owner of the accounts.
CREATE OR REPLACE FUNCTION readmit_client(
    client text, secret_version numeric, rights_version numeric, signed_by text, guardians boolean,
    known_vendor integer, known_revision bigint, known_as_of timestamptz, known_deletions_since timestamptz,
    known_opening text
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    sight record;
BEGIN
    SELECT kept.*, own.districts, own.schools INTO sight
    FROM standing_client(client, secret_version, rights_version, signed_by) found CROSS JOIN LATERAL (
        SELECT ARRAY(SELECT district_id FROM vendor_grants WHERE vendor_id = found.vendor AND school_id IS NULL)
            AS districts,
        ARRAY(SELECT school_id FROM vendor_grants WHERE vendor_id = found.vendor AND school_id IS NOT NULL) AS schools
        OFFSET 0
    ) own JOIN sights kept
    ON kept.key = md5(concat_ws(' ', own.districts::text, own.schools::text)) AND kept.revision = found.revision
    WHERE (found.vendor, found.revision, found.as_of, found.deletions_since)
        = (known_vendor, known_revision, known_as_of, known_deletions_since)
    AND md5(concat_ws(' ', kept.hash, guardians::text)) = known_opening;
    IF FOUND THEN
        PERFORM set_config('roster.granted_orgs', sight.granted_orgs, true),
            set_config('roster.granted_districts', sight.districts::text, true),
            set_config('roster.shown_orgs', sight.shown_orgs, true),
            set_config('roster.guardians', guardians::text, true),
            set_config('roster.everyone',
                (CASE WHEN guardians THEN sight.everyone ELSE sight.everyone_but_guardians END)::text, true),
            set_config('roster.granted_schools', sight.schools::text, true),
            set_config('roster.districts_above', (
                ARRAY(SELECT DISTINCT district_id FROM orgs
                WHERE sourced_id = ANY (sight.schools) AND district_id IS NOT NULL)
            )::text, true);
        RETURN true;
    END IF;
    PERFORM FROM admit_client(client, secret_version, rights_version, signed_by, guardians) found
    WHERE (found.vendor, found.revision, found.as_of, found.deletions_since, found.opening)
        = (known_vendor, known_revision, known_as_of, known_deletions_since, known_opening);
    IF FOUND THEN
        RETURN true;
    END IF;
    PERFORM set_sight('{}', '{}', false);
    RETURN false;
END
$$;
REVOKE ALL ON FUNCTION readmit_client(
    text, numeric, numeric, text, boolean, integer, bigint, timestamptz, timestamptz, text
) FROM PUBLIC;
