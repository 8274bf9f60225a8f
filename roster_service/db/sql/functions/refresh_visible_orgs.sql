-- Updates the visible orgs of a vendor, and from them its visible feeds: the orgs of its granted districts, its granted
-- schools, and the districts of those. If two transactions update one vendor, the second waits for the first and reads
-- the rows that it has committed: otherwise a sync could write a row for a grant that was revoked meanwhile. They wait
-- for the lock of the vendor's row, which a change of grants already has: with another lock beside it, two transactions
-- could take the two in different order, and deadlock.
CREATE OR REPLACE FUNCTION refresh_visible_orgs(vendor integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    current_key uuid;
    districts text[];
    schools text[];
BEGIN
    SELECT found.visibility_key INTO STRICT current_key FROM vendors found WHERE found.id = vendor FOR NO KEY UPDATE;
    districts := ARRAY(
        SELECT given.district_id FROM vendor_grants given WHERE given.vendor_id = vendor AND given.school_id IS NULL
    );
    schools := ARRAY(
        SELECT given.school_id FROM vendor_grants given WHERE given.vendor_id = vendor AND given.school_id IS NOT NULL
    );
    WITH wanted AS (
        SELECT org.sourced_id AS org_id, org.feed_id,
            org.sourced_id = ANY (schools) OR coalesce(org.district_id = ANY (districts), false) AS granted,
            org.sourced_id = ANY (districts) AS whole_district
        FROM orgs org
        WHERE org.district_id = ANY (districts) OR org.sourced_id = ANY (schools)
            OR org.sourced_id IN (SELECT school.district_id FROM orgs school WHERE school.sourced_id = ANY (schools))
    ), gone AS (
        DELETE FROM visible_orgs known
        WHERE known.vendor_id = vendor AND NOT EXISTS (SELECT FROM wanted WHERE wanted.org_id = known.org_id)
    )
    INSERT INTO visible_orgs AS known (vendor_id, org_id, feed_id, granted, whole_district, key)
    SELECT vendor, wanted.org_id, wanted.feed_id, wanted.granted, wanted.whole_district, current_key FROM wanted
    ON CONFLICT (vendor_id, org_id) DO UPDATE
    SET feed_id = excluded.feed_id, granted = excluded.granted, whole_district = excluded.whole_district,
        key = excluded.key
    WHERE (known.feed_id, known.granted, known.whole_district, known.key)
        IS DISTINCT FROM (excluded.feed_id, excluded.granted, excluded.whole_district, excluded.key);
    -- The hashes are salted, because they open orderings: nobody can compute them from known ids.
    WITH orgs_seen AS (
        SELECT known.feed_id, jsonb_agg(jsonb_build_array(known.org_id, known.granted) ORDER BY known.org_id) AS listed
        FROM visible_orgs known WHERE known.vendor_id = vendor GROUP BY known.feed_id
    ), parts AS (
        SELECT part.feed_id, part.listed, feed.revision, feed.as_of, feed.deletions_since
        FROM orgs_seen part JOIN feeds feed ON feed.id = part.feed_id
    ), whole AS (
        SELECT 0 AS feed_id, jsonb_agg(jsonb_build_array(parts.feed_id, parts.listed) ORDER BY parts.feed_id) AS listed,
            max(parts.revision) AS revision, max(parts.as_of) AS as_of, max(parts.deletions_since) AS deletions_since
        FROM parts
    ), to_come AS (
        -- Consumers go on from `as_of`, so it stays before the stamps that runs of these feeds have not announced yet. A
        -- run may add the org of a grant that opens none so far, whatever its feed.
        SELECT min(going.stamp) - interval '1 millisecond' AS last_before
        FROM find_runs_under_way() going JOIN feeds feed ON feed.id = going.feed_id
        WHERE going.stamp > feed.as_of AND (
            going.feed_id IN (SELECT parts.feed_id FROM parts)
            OR EXISTS (
                SELECT FROM unnest(districts || schools) AS given (org_id)
                WHERE NOT EXISTS (SELECT FROM orgs org WHERE org.sourced_id = given.org_id)
            )
        )
    ), wanted AS (
        SELECT part.*, encode(sha256(convert_to(
            jsonb_build_array(state.salt, part.feed_id, part.listed)::text, 'UTF8'
        )), 'hex') AS visible_set
        FROM (SELECT * FROM parts UNION ALL SELECT feed_id, listed, revision, as_of, deletions_since FROM whole) part
        CROSS JOIN roster_state state
    ), gone AS (
        DELETE FROM visible_feeds known
        WHERE known.vendor_id = vendor AND NOT EXISTS (SELECT FROM wanted WHERE wanted.feed_id = known.feed_id)
    )
    INSERT INTO visible_feeds AS known
        (vendor_id, feed_id, key, visible_set, revision, as_of, deletions_since)
    SELECT vendor, wanted.feed_id, current_key, wanted.visible_set,
        -- The row of the whole has the state of the roster, as soon as the vendor sees other orgs than before: then
        -- those of its feeds would not tell its consumers of the change.
        CASE WHEN moved THEN state.revision ELSE greatest(former.revision, wanted.revision) END,
        least(
            CASE WHEN moved THEN state.as_of ELSE greatest(former.as_of, wanted.as_of) END,
            CASE WHEN wanted.feed_id = 0 THEN to_come.last_before END
        ),
        CASE WHEN moved THEN state.deletions_since ELSE greatest(former.deletions_since, wanted.deletions_since) END
    FROM wanted CROSS JOIN roster_state state CROSS JOIN to_come
    LEFT JOIN visible_feeds former
        ON former.vendor_id = vendor AND former.feed_id = wanted.feed_id AND wanted.feed_id = 0
    CROSS JOIN LATERAL (
        SELECT wanted.feed_id = 0 AND former.visible_set IS DISTINCT FROM wanted.visible_set AS moved
    ) change
    ON CONFLICT (vendor_id, feed_id) DO UPDATE
    SET key = excluded.key, visible_set = excluded.visible_set, revision = excluded.revision, as_of = excluded.as_of,
        deletions_since = excluded.deletions_since
    WHERE (known.key, known.visible_set, known.revision, known.as_of, known.deletions_since)
        IS DISTINCT FROM (
            excluded.key, excluded.visible_set, excluded.revision, excluded.as_of, excluded.deletions_since
        );
END
$$;
REVOKE ALL ON FUNCTION refresh_visible_orgs(integer) FROM PUBLIC;
