-- Sets what the policies read, for the rest of the transaction: the granted districts and schools, the districts above
-- these schools, all granted orgs, whether guardians are shown, and whether every user is. Returns a hash of it. What
-- keep_sight has stored for this revision is looked up. Otherwise the orgs are worked out here, and `everyone` is
-- false: that costs too much for a single request. It runs as the owner of the tables: the role that serves sees no org
-- before.
CREATE OR REPLACE FUNCTION set_sight(districts text[], schools text[], guardians boolean) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    sight record;
BEGIN
    SELECT kept.* INTO sight FROM sights kept JOIN roster_state state ON state.revision = kept.revision
    WHERE kept.key = md5(concat_ws(' ', districts::text, schools::text));
    IF NOT FOUND THEN
        SELECT opened.* INTO sight FROM (
            SELECT state.revision,
                found.granted::text AS granted_orgs, (found.granted || found.above)::text AS shown_orgs,
                md5(concat_ws(' ', found.granted::text, found.above::text)) AS hash,
                false AS everyone, false AS everyone_but_guardians
            FROM roster_state state CROSS JOIN (
                SELECT ARRAY(
                    SELECT sourced_id FROM orgs WHERE district_id = ANY (districts)
                    UNION SELECT sourced_id FROM orgs WHERE sourced_id = ANY (schools) ORDER BY 1
                ) AS granted, ARRAY(
                    SELECT DISTINCT district_id FROM orgs
                    WHERE sourced_id = ANY (schools) AND district_id IS NOT NULL ORDER BY 1
                ) AS above
            ) found
        ) opened;
    END IF;
    PERFORM set_config('roster.granted_orgs', sight.granted_orgs, true),
        set_config('roster.granted_districts', districts::text, true),
        set_config('roster.shown_orgs', sight.shown_orgs, true),
        set_config('roster.guardians', guardians::text, true),
        set_config('roster.everyone',
            (CASE WHEN guardians THEN sight.everyone ELSE sight.everyone_but_guardians END)::text, true),
        set_config('roster.granted_schools', schools::text, true),
        set_config('roster.districts_above', (
            ARRAY(SELECT DISTINCT district_id FROM orgs WHERE sourced_id = ANY (schools) AND district_id IS NOT NULL)
        )::text, true);
    RETURN md5(concat_ws(' ', sight.hash, guardians::text));
END
$$;
REVOKE ALL ON FUNCTION set_sight(text[], text[], boolean) FROM PUBLIC;
