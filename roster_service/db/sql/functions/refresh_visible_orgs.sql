-- Updates the visible orgs of a vendor, and from them its visible labels and its visible feeds: the orgs of its granted districts, its granted
-- schools, and the districts of those. If two transactions update one vendor, the second waits for the first and reads
-- the rows that it has committed: otherwise a sync could write a row for a grant that was revoked meanwhile. They wait
-- for the lock of the vendor's row, which a change of grants already has: with another lock beside it, two transactions
-- could take the two in different order, and deadlock.
--
-- The vendor's floor moves if another set of known orgs, or of known feeds, is visible than before, or if a district has
-- another identifier, by which the vendor interface asks for its students: no stamp tells of that.
-- A person who is kept from the vendor moves none: such a change has stamps and departures for the vendor alone.
-- `new_orgs`: the orgs that the transaction has added; their records have its stamp, so they move no floor, and neither
-- does an org that the transaction has deleted.
CREATE OR REPLACE FUNCTION refresh_visible_orgs(vendor integer, new_orgs text[] DEFAULT '{}') RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    current_key uuid;
    current_floor timestamptz;
    cap timestamptz;
    districts text[];
    schools text[];
    plain_districts text[];
    plain_schools text[];
    lost integer[];
    has_other_groups boolean;
    has_other_orgs boolean;
BEGIN
    SELECT found.visibility_key, found.floor INTO STRICT current_key, current_floor
    FROM vendors found WHERE found.id = vendor FOR NO KEY UPDATE;
    districts := ARRAY(
        SELECT given.district_id FROM agreed_grants(vendor) given WHERE given.school_id IS NULL
    );
    schools := ARRAY(
        SELECT given.school_id FROM agreed_grants(vendor) given WHERE given.school_id IS NOT NULL
    );
    plain_districts := ARRAY(
        SELECT given.district_id FROM agreed_grants(vendor) given WHERE given.school_id IS NULL AND given.staff IS NULL
    );
    plain_schools := ARRAY(
        SELECT given.school_id FROM agreed_grants(vendor) given
        WHERE given.school_id IS NOT NULL AND given.staff IS NULL
    );
    -- A group, too, is a right of the vendor, whose records have no stamp of it.
    WITH wanted AS (
        SELECT given.id AS group_id FROM agreed_grants(vendor) given WHERE given.staff IS NOT NULL
    ), gone AS (
        DELETE FROM visible_groups known
        WHERE known.vendor_id = vendor AND NOT EXISTS (SELECT FROM wanted WHERE wanted.group_id = known.group_id)
        RETURNING known.group_id
    ), kept AS (
        INSERT INTO visible_groups AS known (vendor_id, group_id, key)
        SELECT vendor, wanted.group_id, current_key FROM wanted
        ON CONFLICT (vendor_id, group_id) DO UPDATE SET key = excluded.key WHERE known.key <> excluded.key
    )
    SELECT EXISTS (SELECT FROM gone) OR EXISTS (
        SELECT FROM wanted WHERE NOT EXISTS (
            SELECT FROM visible_groups known WHERE known.vendor_id = vendor AND known.group_id = wanted.group_id
        )
    ) INTO has_other_groups;
    UPDATE kept_people kept SET key = current_key WHERE kept.vendor_id = vendor AND kept.key <> current_key;
    -- A token says whether there are rules: one that says no is answered without what they open. Where a school moves
    -- into an agreed district, no change of grants ends it.
    UPDATE vendors asked SET has_rules = NOT asked.has_rules,
        grant_version = asked.grant_version + CASE
            WHEN NOT asked.has_rules AND EXISTS (SELECT FROM visible_groups own WHERE own.vendor_id = vendor) THEN 1
            ELSE 0
        END
    WHERE asked.id = vendor AND asked.has_rules <> (
        EXISTS (SELECT FROM visible_groups own WHERE own.vendor_id = vendor)
        OR EXISTS (SELECT FROM kept_people kept WHERE kept.vendor_id = vendor)
    );
    WITH wanted AS (
        SELECT org.sourced_id AS org_id, org.feed_id, org.district_id,
            CASE WHEN org.type = 'district' THEN org.identifier END AS district_identifier,
            org.sourced_id = ANY (plain_schools) OR coalesce(org.district_id = ANY (plain_districts), false) AS granted,
            org.sourced_id = ANY (plain_districts) AS whole_district,
            org.sourced_id = ANY (schools) OR coalesce(org.district_id = ANY (districts), false) AS shared,
            NOT (
                coalesce(org.district_id = ANY (plain_districts), false) OR org.sourced_id = ANY (plain_schools)
                OR org.sourced_id IN (
                    SELECT school.district_id FROM orgs school WHERE school.sourced_id = ANY (plain_schools)
                )
            ) AS narrowed
        FROM orgs org
        WHERE org.district_id = ANY (districts) OR org.sourced_id = ANY (schools)
            OR org.sourced_id IN (SELECT school.district_id FROM orgs school WHERE school.sourced_id = ANY (schools))
    ), former AS (
        SELECT known.org_id, known.feed_id, known.granted, known.district_id, known.district_identifier, known.shared,
            known.narrowed
        FROM visible_orgs known WHERE known.vendor_id = vendor
    ), gone AS (
        DELETE FROM visible_orgs known
        WHERE known.vendor_id = vendor AND NOT EXISTS (SELECT FROM wanted WHERE wanted.org_id = known.org_id)
    ), kept AS (
        INSERT INTO visible_orgs AS known (
            vendor_id, org_id, feed_id, granted, whole_district, district_id, district_identifier, shared, narrowed, key
        )
        SELECT vendor, wanted.org_id, wanted.feed_id, wanted.granted, wanted.whole_district, wanted.district_id,
            wanted.district_identifier, wanted.shared, wanted.narrowed, current_key
        FROM wanted
        ON CONFLICT (vendor_id, org_id) DO UPDATE
        SET feed_id = excluded.feed_id, granted = excluded.granted, whole_district = excluded.whole_district,
            district_id = excluded.district_id, district_identifier = excluded.district_identifier,
            shared = excluded.shared, narrowed = excluded.narrowed, key = excluded.key
        WHERE (
            known.feed_id, known.granted, known.whole_district, known.district_id, known.district_identifier,
            known.shared, known.narrowed, known.key
        ) IS DISTINCT FROM (
            excluded.feed_id, excluded.granted, excluded.whole_district, excluded.district_id,
            excluded.district_identifier, excluded.shared, excluded.narrowed, excluded.key
        )
    ), other_orgs AS (
        -- A school that changes its district is open as before, and leaves the list of students of the former one.
        SELECT org_id FROM former FULL JOIN wanted USING (org_id)
        WHERE (former.granted, former.district_id, former.district_identifier, former.shared, former.narrowed)
            IS DISTINCT FROM
            (wanted.granted, wanted.district_id, wanted.district_identifier, wanted.shared, wanted.narrowed)
    ), other_feeds AS (
        SELECT feed_id FROM (SELECT DISTINCT feed_id, true AS was FROM former) before
        FULL JOIN (SELECT DISTINCT feed_id, true AS is_now FROM wanted) after USING (feed_id)
        WHERE was IS DISTINCT FROM is_now
    )
    SELECT
        EXISTS (
            SELECT FROM orgs org
            WHERE org.sourced_id <> ALL (new_orgs)
                AND (org.sourced_id IN (SELECT org_id FROM other_orgs) OR org.feed_id IN (SELECT feed_id FROM other_feeds))
        ),
        ARRAY(SELECT feed_id FROM former EXCEPT SELECT feed_id FROM wanted)
    INTO has_other_orgs, lost;
    IF has_other_orgs OR has_other_groups THEN
        current_floor := next_stamp();
        UPDATE vendors SET floor = current_floor WHERE id = vendor;
    END IF;
    -- A label opens its records if all of `all_orgs` are granted, and besides one of the other lists opens them.
    WITH parts AS (
        SELECT label.id AS label_id, part.list, coalesce(seen.granted, false) AS granted,
            seen.org_id IS NOT NULL AND NOT seen.narrowed AS visible
        FROM visibility_labels label CROSS JOIN LATERAL (
            SELECT 'all' AS list, unnest(label.all_orgs) AS org_id
            UNION ALL SELECT 'any', unnest(label.any_orgs)
            UNION ALL SELECT 'guardian', unnest(label.guardian_orgs)
            UNION ALL SELECT 'listed', unnest(label.listed_orgs)
            UNION ALL SELECT 'student', unnest(label.student_orgs)
            UNION ALL SELECT 'teacher', unnest(label.teacher_orgs)
        ) part LEFT JOIN visible_orgs seen ON seen.vendor_id = vendor AND seen.org_id = part.org_id
    ), wanted AS (
        SELECT parts.label_id,
            bool_or((parts.list = 'any' AND parts.granted) OR (parts.list = 'listed' AND parts.visible))
                AS without_guardians,
            bool_or(parts.list = 'student' AND parts.granted) AS opens_students,
            bool_or(parts.list = 'teacher' AND parts.granted) AS opens_teachers
        FROM parts GROUP BY parts.label_id
        HAVING bool_and(parts.list <> 'all' OR parts.granted) AND bool_or(
            (parts.list IN ('any', 'guardian') AND parts.granted) OR (parts.list = 'listed' AND parts.visible)
        )
    ), gone AS (
        DELETE FROM visible_labels known
        WHERE known.vendor_id = vendor AND NOT EXISTS (SELECT FROM wanted WHERE wanted.label_id = known.label_id)
    )
    INSERT INTO visible_labels AS known
        (vendor_id, label_id, without_guardians, opens_students, opens_teachers, key)
    SELECT vendor, wanted.label_id, wanted.without_guardians, wanted.opens_students, wanted.opens_teachers, current_key
    FROM wanted
    ON CONFLICT (vendor_id, label_id) DO UPDATE
    SET without_guardians = excluded.without_guardians, opens_students = excluded.opens_students,
        opens_teachers = excluded.opens_teachers, key = excluded.key
    WHERE (known.without_guardians, known.opens_students, known.opens_teachers, known.key)
        IS DISTINCT FROM (excluded.without_guardians, excluded.opens_students, excluded.opens_teachers, excluded.key);
    -- Consumers go on from `as_of`, so it stays before the stamps that runs of these feeds have not announced yet. A run
    -- may add the org of a grant that opens none so far, whatever its feed.
    SELECT min(going.stamp) - interval '1 millisecond' INTO cap
    FROM find_runs_under_way() going JOIN feeds feed ON feed.id = going.feed_id
    WHERE going.stamp > feed.as_of AND (
        going.feed_id IN (SELECT seen.feed_id FROM visible_orgs seen WHERE seen.vendor_id = vendor)
        OR EXISTS (
            SELECT FROM unnest(districts || schools) AS given (org_id)
            WHERE NOT EXISTS (SELECT FROM orgs org WHERE org.sourced_id = given.org_id)
        )
    );
    UPDATE oauth_clients client SET as_of = client.floor
    WHERE client.vendor_id = vendor AND client.as_of < client.floor AND (cap IS NULL OR client.floor <= cap);
    -- The hashes are salted, because they open orderings: nobody can compute them from known ids.
    WITH orgs_seen AS (
        SELECT known.feed_id, jsonb_agg(
            jsonb_build_array(known.org_id, known.granted, known.narrowed) ORDER BY known.org_id
        ) AS listed
        FROM visible_orgs known WHERE known.vendor_id = vendor GROUP BY known.feed_id
    ), parts AS (
        SELECT part.feed_id, part.listed, feed.revision, feed.as_of, feed.deletions_since, (
            SELECT min(left_at.departed_at) FROM departures left_at WHERE left_at.feed_id = part.feed_id
        ) AS first_departure
        FROM orgs_seen part JOIN feeds feed ON feed.id = part.feed_id
    ), whole AS (
        SELECT 0 AS feed_id, jsonb_agg(jsonb_build_array(parts.feed_id, parts.listed) ORDER BY parts.feed_id) AS listed,
            coalesce(max(parts.revision), state.revision) AS revision,
            greatest(
                coalesce(max(parts.as_of), state.as_of), current_floor,
                (SELECT max(greatest(kept.since, kept.until)) FROM kept_people kept WHERE kept.vendor_id = vendor)
            ) AS as_of,
            greatest(
                coalesce(max(parts.deletions_since), state.deletions_since), current_floor,
                (SELECT max(feed.deletions_since) FROM feeds feed WHERE feed.id = ANY (lost))
            ) AS deletions_since, min(parts.first_departure) AS first_departure
        FROM roster_state state LEFT JOIN parts ON true
        GROUP BY state.revision, state.as_of, state.deletions_since
    ), wanted AS (
        SELECT part.*, encode(sha256(convert_to(
            jsonb_build_array(
                state.salt, part.feed_id, part.listed, ARRAY(
                    SELECT seen.group_id FROM visible_groups seen WHERE seen.vendor_id = vendor ORDER BY seen.group_id
                ), ARRAY(
                    SELECT jsonb_build_array(kept.user_id, extract(epoch FROM kept.since), extract(epoch FROM kept.until))
                    FROM kept_people kept WHERE kept.vendor_id = vendor ORDER BY kept.user_id, kept.since
                )
            )::text, 'UTF8'
        )), 'hex') AS visible_set
        FROM (SELECT * FROM parts UNION ALL SELECT * FROM whole) part CROSS JOIN roster_state state
    ), gone AS (
        DELETE FROM visible_feeds known
        WHERE known.vendor_id = vendor AND NOT EXISTS (SELECT FROM wanted WHERE wanted.feed_id = known.feed_id)
    )
    INSERT INTO visible_feeds AS known
        (vendor_id, feed_id, key, visible_set, revision, as_of, deletions_since, floor, first_departure)
    SELECT vendor, wanted.feed_id, current_key, wanted.visible_set,
        -- The row of the whole has the revision of the roster, as soon as the vendor sees something else than before: then
        -- those of its feeds would not tell its consumers of the change. Whoever makes such a change has moved the roster
        -- on before (`begin_change_of_rights`), so each view of the vendor has revisions of its own.
        CASE
            WHEN wanted.feed_id = 0 AND (former.visible_set, former.floor) IS DISTINCT FROM (wanted.visible_set, current_floor)
                THEN state.revision
            ELSE greatest(former.revision, wanted.revision)
        END,
        least(greatest(former.as_of, wanted.as_of), CASE WHEN wanted.feed_id = 0 THEN cap END),
        greatest(former.deletions_since, wanted.deletions_since), current_floor, wanted.first_departure
    FROM wanted CROSS JOIN roster_state state
    LEFT JOIN visible_feeds former
        ON former.vendor_id = vendor AND former.feed_id = wanted.feed_id AND wanted.feed_id = 0
    ON CONFLICT (vendor_id, feed_id) DO UPDATE
    SET key = excluded.key, visible_set = excluded.visible_set, revision = excluded.revision, as_of = excluded.as_of,
        deletions_since = excluded.deletions_since, floor = excluded.floor, first_departure = excluded.first_departure
    WHERE (
            known.key, known.visible_set, known.revision, known.as_of, known.deletions_since, known.floor,
            known.first_departure
        ) IS DISTINCT FROM (
            excluded.key, excluded.visible_set, excluded.revision, excluded.as_of, excluded.deletions_since,
            excluded.floor, excluded.first_departure
        );
END
$$;
REVOKE ALL ON FUNCTION refresh_visible_orgs FROM PUBLIC;
