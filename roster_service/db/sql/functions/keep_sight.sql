-- Stores which orgs a list of grants opens, for as long as the revision is the same, so that set_sight looks it up:
-- small requests of large districts cost a fraction. Whether every user is shown is worked out here alone: every org is
-- granted, and each user has a role in one, for callers without guardians one that is not a guardian's. What is stored
-- for this revision already is not worked out again. One statement reads all, so that all is of one revision. It runs
-- as the owner of the tables: the role that serves can have it stored, and cannot say what it is.
CREATE OR REPLACE FUNCTION keep_sight(districts text[], schools text[]) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT AS $$
    DELETE FROM sights kept WHERE kept.revision < (SELECT state.revision FROM roster_state state);
    INSERT INTO sights (key, revision, granted_orgs, shown_orgs, hash, everyone, everyone_but_guardians)
    SELECT md5(concat_ws(' ', districts::text, schools::text)), opened.* FROM (
        SELECT state.revision,
            found.granted::text AS granted_orgs, (found.granted || found.above)::text AS shown_orgs,
            md5(concat_ws(' ', found.granted::text, found.above::text)) AS hash,
            CASE WHEN cardinality(found.granted) = (SELECT count(*) FROM orgs) THEN NOT EXISTS (
                SELECT FROM (SELECT sourced_id FROM users UNION ALL SELECT sourced_id FROM demographics) person
                WHERE NOT EXISTS (
                    SELECT FROM user_roles held JOIN orgs org ON org.sourced_id = held.org_id
                    WHERE held.user_id = person.sourced_id
                )
            ) ELSE false END AS everyone,
            CASE WHEN cardinality(found.granted) = (SELECT count(*) FROM orgs) THEN NOT EXISTS (
                SELECT FROM (SELECT sourced_id FROM users UNION ALL SELECT sourced_id FROM demographics) person
                WHERE NOT EXISTS (
                    SELECT FROM user_roles held JOIN orgs org ON org.sourced_id = held.org_id
                    WHERE held.user_id = person.sourced_id AND held.role NOT IN ('guardian', 'parent', 'relative')
                )
            ) ELSE false END AS everyone_but_guardians
        FROM roster_state state CROSS JOIN (
            SELECT ARRAY(
                SELECT sourced_id FROM orgs WHERE district_id = ANY (districts)
                UNION SELECT sourced_id FROM orgs WHERE sourced_id = ANY (schools) ORDER BY 1
            ) AS granted, ARRAY(
                SELECT DISTINCT district_id FROM orgs
                WHERE sourced_id = ANY (schools) AND district_id IS NOT NULL ORDER BY 1
            ) AS above
        ) found
    ) opened
    WHERE NOT EXISTS (SELECT FROM sights kept WHERE kept.key = md5(concat_ws(' ', districts::text, schools::text)))
    ON CONFLICT (key) DO UPDATE SET revision = excluded.revision, granted_orgs = excluded.granted_orgs,
        shown_orgs = excluded.shown_orgs, hash = excluded.hash,
        everyone = excluded.everyone, everyone_but_guardians = excluded.everyone_but_guardians
    WHERE sights.revision < excluded.revision;
$$;
REVOKE ALL ON FUNCTION keep_sight(text[], text[]) FROM PUBLIC;
