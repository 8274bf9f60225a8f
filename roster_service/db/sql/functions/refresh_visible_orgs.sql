-- Updates the visible orgs of a vendor: the orgs of its granted districts, its granted schools, and the districts of
-- those. Vendor 0, with which records are rendered, sees every org. If two transactions update one vendor, the second
-- waits for the first and reads the rows that it has committed: otherwise a sync could write a row for a grant that was
-- revoked meanwhile. They wait for the lock of the vendor's row, which a change of grants already has: with another
-- lock beside it, two transactions could take the two in different order, and deadlock.
CREATE OR REPLACE FUNCTION refresh_visible_orgs(vendor integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    is_renderer boolean := vendor = 0;
    current_key uuid := gen_random_uuid();
    districts text[];
    schools text[];
BEGIN
    IF NOT is_renderer THEN
        SELECT found.visibility_key INTO STRICT current_key FROM vendors found WHERE found.id = vendor
        FOR NO KEY UPDATE;
    END IF;
    districts := ARRAY(
        SELECT given.district_id FROM vendor_grants given WHERE given.vendor_id = vendor AND given.school_id IS NULL
    );
    schools := ARRAY(
        SELECT given.school_id FROM vendor_grants given WHERE given.vendor_id = vendor AND given.school_id IS NOT NULL
    );
    WITH wanted AS (
        SELECT org.sourced_id AS org_id, org.feed_id,
            is_renderer OR org.sourced_id = ANY (schools) OR coalesce(org.district_id = ANY (districts), false) AS granted,
            org.sourced_id = ANY (districts) OR (is_renderer AND org.type = 'district') AS whole_district
        FROM orgs org
        WHERE is_renderer OR org.district_id = ANY (districts) OR org.sourced_id = ANY (schools)
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
    -- Salted, because the hash opens the orderings of these orgs: nobody can compute it from known ids.
    UPDATE vendors SET visible_set = seen.hash
    FROM (
        SELECT encode(sha256(convert_to(jsonb_build_array(
            state.salt, jsonb_agg(jsonb_build_array(known.org_id, known.granted) ORDER BY known.org_id)
        )::text, 'UTF8')), 'hex') AS hash
        FROM roster_state state LEFT JOIN visible_orgs known ON known.vendor_id = vendor
        GROUP BY state.salt
    ) seen
    WHERE vendors.id = vendor AND vendors.visible_set <> seen.hash;
END
$$;
REVOKE ALL ON FUNCTION refresh_visible_orgs(integer) FROM PUBLIC;
