-- Admits the client of an access token: its vendor, the grants and the state of the roster, and sets what the policies
-- read (set_sight). No row, and nothing set, where the token counts no longer. It runs as the owner of the tables: the
-- role that serves reads no account by itself.
CREATE OR REPLACE FUNCTION admit_client(
    client text, secret_version numeric, rights_version numeric, signed_by text, guardians boolean,
    OUT vendor integer, OUT districts text[], OUT schools text[],
    OUT revision bigint, OUT as_of timestamptz, OUT deletions_since timestamptz, OUT opening text, OUT everyone boolean
) RETURNS SETOF record
LANGUAGE plpgsql ROWS 1 SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    SELECT found.vendor,
        ARRAY(SELECT district_id FROM vendor_grants WHERE vendor_id = found.vendor AND school_id IS NULL),
        ARRAY(SELECT school_id FROM vendor_grants WHERE vendor_id = found.vendor AND school_id IS NOT NULL),
        found.revision, found.as_of, found.deletions_since
    INTO vendor, districts, schools, revision, as_of, deletions_since
    FROM standing_client(client, secret_version, rights_version, signed_by) found;
    IF FOUND THEN
        opening := set_sight(districts, schools, guardians);
        everyone := current_setting('roster.everyone')::boolean;
        RETURN NEXT;
    END IF;
END
$$;
REVOKE ALL ON FUNCTION admit_client(text, numeric, numeric, text, boolean) FROM PUBLIC;
