CREATE COLLATION public.roster_nocase (provider = builtin, locale = 'C.UTF-8');

CREATE FUNCTION public.admit_client(client text, vendor numeric, client_version numeric, grant_version numeric, visibility_key uuid, signed_by text, guardians boolean, slots integer DEFAULT NULL::integer) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    AS $$
DECLARE
    admitted vendors;
    own_floor text;
    own_as_of text;
    is_valid boolean;
    refusal text;
BEGIN
    SELECT found.* INTO admitted
    FROM oauth_clients asking JOIN vendors found ON found.id = asking.vendor_id
    WHERE asking.client_id = client AND asking.enabled AND asking.version = client_version
        AND found.id = vendor AND found.enabled AND found.grant_version = admit_client.grant_version
        AND found.visibility_key = admit_client.visibility_key
        AND (signed_by IS NULL OR EXISTS (
            SELECT FROM signing_keys known
            WHERE known.key_id = signed_by AND (known.retired_at IS NULL OR known.retired_at > now())
        ));
    is_valid := admitted.id IS NOT NULL;
    -- With the zone, because these texts are read, and are part of the names of orderings, in other sessions.
    SELECT to_char(asking.floor AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
        to_char(asking.as_of AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
    INTO own_floor, own_as_of
    FROM oauth_clients asking WHERE asking.client_id = client;
    IF is_valid THEN
        refusal := 'agreement ' || find_agreement_refusal(admitted.id);
    END IF;
    IF is_valid AND refusal IS NULL
        AND NOT EXISTS (SELECT FROM vendor_grants given WHERE given.vendor_id = admitted.id) THEN
        refusal := 'no grant';
    ELSIF is_valid AND refusal IS NULL AND slots IS NOT NULL AND NOT EXISTS (
        -- Locks of two numbers: all others of this service have one. EXISTS ends with the first slot that is free.
        SELECT FROM generate_series(1, slots) AS slot WHERE pg_try_advisory_xact_lock(admitted.id, slot)
    ) THEN
        refusal := 'no slot';
    END IF;
    IF refusal IS NOT NULL THEN
        admitted := NULL;
    END IF;
    PERFORM set_config('roster.visibility_key', coalesce(admitted.visibility_key::text, ''), true),
        set_config('roster.guardians', (guardians AND admitted.id IS NOT NULL)::text, true),
        set_config('roster.floor', coalesce(own_floor, ''), true),
        set_config('roster.as_of', coalesce(own_as_of, ''), true),
        set_config('roster.refusal', coalesce(refusal, ''), true);
    RETURN CASE WHEN refusal IS NULL THEN is_valid WHEN refusal <> 'no slot' THEN false END;
END
$$;

CREATE FUNCTION public.admit_key_holder(hash bytea, guardians boolean, version integer DEFAULT NULL::integer, OUT vendor integer, OUT key_prefix text, OUT enabled boolean, OUT grant_version integer, OUT districts text[], OUT schools text[], OUT flags text[], OUT listed text[], OUT requests_per_second integer, OUT burst integer, OUT requests_per_day integer, OUT live_keys text[], OUT agreed_fields text[], OUT agreed_scopes text[], OUT agreed_flags text[], OUT agreed_metadata_keys text[], OUT not_agreed text, OUT revision bigint, OUT as_of timestamp with time zone, OUT deletions_since timestamp with time zone, OUT has_rules boolean) RETURNS SETOF record
    LANGUAGE plpgsql SECURITY DEFINER ROWS 1
    SET search_path TO 'public', 'pg_temp'
    AS $$
DECLARE
    admitted vendors;
    known_prefix text;
    is_open boolean;
BEGIN
    SELECT found.* INTO admitted
    FROM api_keys asking JOIN vendors found ON found.id = asking.vendor_id
    WHERE asking.key_hash = hash AND (asking.expires_at IS NULL OR asking.expires_at > now());
    SELECT asking.prefix INTO known_prefix FROM api_keys asking WHERE asking.key_hash = hash;
    not_agreed := find_agreement_refusal(admitted.id);
    is_open := coalesce(admitted.enabled, false) AND not_agreed IS NULL
        AND (version IS NULL OR admitted.grant_version = version);
    PERFORM set_config('roster.visibility_key', CASE WHEN is_open THEN admitted.visibility_key::text ELSE '' END, true),
        set_config('roster.guardians', (guardians AND is_open)::text, true),
        set_config('roster.floor', '', true), set_config('roster.as_of', '', true),
        set_config('roster.refusal', coalesce('agreement ' || not_agreed, ''), true);
    RETURN QUERY SELECT admitted.id, known_prefix, admitted.enabled, admitted.grant_version,
        granted.districts, granted.schools,
        admitted.flags, coalesce(admitted.withheld, (SELECT kept.withheld FROM vendor_defaults kept)),
        admitted.requests_per_second, admitted.burst, admitted.requests_per_day,
        ARRAY(
            SELECT known.key_id FROM signing_keys known WHERE known.retired_at IS NULL OR known.retired_at > now()
        ),
        agreed.fields, agreed.scopes, agreed.flags, agreed.metadata_keys, not_agreed,
        state.revision, state.as_of, state.deletions_since,
        admitted.has_rules
    FROM visible_feeds state LEFT JOIN agreements agreed ON agreed.vendor_id = state.vendor_id
    CROSS JOIN (
        SELECT coalesce(array_agg(given.district_id) FILTER (WHERE given.school_id IS NULL), '{}') AS districts,
            coalesce(array_agg(given.school_id) FILTER (WHERE given.school_id IS NOT NULL), '{}') AS schools
        FROM agreed_grants(admitted.id) given
    ) granted
    WHERE state.vendor_id = admitted.id AND state.feed_id = 0;
END
$$;

CREATE TABLE public.vendor_grants (
    id integer NOT NULL,
    vendor_id integer NOT NULL,
    district_id text NOT NULL COLLATE pg_catalog."C",
    school_id text COLLATE pg_catalog."C",
    students text COLLATE pg_catalog."C",
    classes text COLLATE pg_catalog."C",
    staff text COLLATE pg_catalog."C",
    guardians boolean DEFAULT true NOT NULL
);

CREATE FUNCTION public.agreed_grants(vendor integer) RETURNS SETOF public.vendor_grants
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    AS $$
    SELECT * FROM limit_grants(vendor, ARRAY(SELECT given FROM vendor_grants given WHERE given.vendor_id = vendor))
$$;

CREATE FUNCTION public.folding_lower(text) RETURNS text
    LANGUAGE internal IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE
    AS $$lower$$;

CREATE FUNCTION public.folding_position(text, text) RETURNS integer
    LANGUAGE internal IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE
    AS $$textpos$$;

CREATE FUNCTION public.folding_replace(text, text, text) RETURNS text
    LANGUAGE internal IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE
    AS $$replace_text$$;

CREATE FUNCTION public.contains_folded(value text, wanted text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN (public.folding_position(public.folding_replace(public.folding_lower((wanted COLLATE public.roster_nocase)), 'ς'::text, 'σ'::text), 'σ'::text) = 0) THEN (public.folding_position(public.folding_lower((value COLLATE public.roster_nocase)), public.folding_replace(public.folding_lower((wanted COLLATE public.roster_nocase)), 'ς'::text, 'σ'::text)) > 0) ELSE (public.folding_position(public.folding_replace(public.folding_lower((value COLLATE public.roster_nocase)), 'ς'::text, 'σ'::text), public.folding_replace(public.folding_lower((wanted COLLATE public.roster_nocase)), 'ς'::text, 'σ'::text)) > 0) END;

CREATE FUNCTION public.evict_orderings(most_bytes bigint, most_orderings bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
    IF NOT pg_try_advisory_xact_lock(1869767785) THEN
        RETURN;
    END IF;
    DELETE FROM pulls pull WHERE pull.ends_at <= now() - interval '1 day';
    WITH together AS (
        SELECT made.vendor_id, made.made_at, max(made.id) AS id, array_agg(made.id) AS ids,
            coalesce(sum(made.bytes), 0) AS bytes
        FROM orderings made
        WHERE (made.feed_id, made.revision, split_part(made.visible_set, ' ', 1)) IN (
                SELECT seen.feed_id, seen.revision, seen.visible_set FROM visible_feeds seen
            ) OR (made.query, made.feed_id, made.visible_set, made.revision) IN (
                SELECT pull.query, part.feed_id, part.visible_set, part.revision
                FROM pulls pull
                CROSS JOIN unnest(pull.feed_ids, pull.visible_sets, pull.feed_revisions)
                    AS part (feed_id, visible_set, revision)
                WHERE pull.ends_at > now()
            )
        GROUP BY made.vendor_id, made.query, made.made_at
    ), valid AS (
        -- With the number and the bytes of the newer ones of the same vendor.
        SELECT made.*, row_number() OVER own - 1 AS own_newer, sum(made.bytes) OVER own - made.bytes AS own_bytes
        FROM together made
        WINDOW own AS (PARTITION BY made.vendor_id ORDER BY made.made_at DESC, made.id DESC)
    ), ranked AS (
        -- The bounds are filled with the newest ones of each vendor, then with the next ones of each, and so on.
        SELECT ranking.ids, ranking.own_newer, ranking.own_bytes,
            row_number() OVER (ORDER BY ranking.own_newer, ranking.made_at DESC, ranking.id DESC) AS place,
            sum(ranking.bytes) OVER (ORDER BY ranking.own_bytes, ranking.made_at DESC, ranking.id DESC) - ranking.bytes
                AS bytes
        FROM valid ranking
    ), kept AS (
        SELECT unnest(chosen.ids) AS id FROM ranked chosen
        WHERE chosen.own_newer = 0 OR (
            chosen.own_bytes < most_bytes / 2 AND chosen.own_newer < most_orderings / 2
            AND chosen.bytes < most_bytes AND chosen.place <= most_orderings
        )
    ), gone AS (
        DELETE FROM orderings made WHERE made.id NOT IN (SELECT kept.id FROM kept) RETURNING made.id
    )
    DELETE FROM ordering_chunks chunk USING gone WHERE chunk.ordering_id = gone.id;
END
$$;

CREATE FUNCTION public.find_agreement_refusal(vendor integer) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    AS $$
DECLARE
    agreed agreements;
BEGIN
    SELECT known.* INTO agreed FROM agreements known WHERE known.vendor_id = vendor;
    IF agreed.vendor_id IS NULL THEN
        RETURN CASE
            WHEN (SELECT kept.agreement_required FROM vendor_defaults kept) THEN 'is required, and there is none'
        END;
    ELSIF agreed.ended_at IS NOT NULL OR agreed.ends_at <= clock_timestamp() THEN
        -- The end of a day is the beginning of the next one.
        RETURN 'ended on ' || to_char((agreed.ends_at - interval '1 millisecond') AT TIME ZONE agreed.zone, 'YYYY-MM-DD');
    ELSIF agreed.starts_at > clock_timestamp() THEN
        RETURN 'begins on ' || to_char(agreed.starts_at AT TIME ZONE agreed.zone, 'YYYY-MM-DD');
    ELSIF NOT EXISTS (SELECT FROM visible_orgs seen WHERE seen.vendor_id = vendor)
        AND EXISTS (SELECT FROM vendor_grants given WHERE given.vendor_id = vendor)
        AND NOT EXISTS (SELECT FROM agreed_grants(vendor)) THEN
        RETURN 'covers none of the districts and schools that are granted';
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION public.find_runs_under_way() RETURNS TABLE(run_id bigint, feed_id integer, stamp timestamp with time zone)
    LANGUAGE sql STABLE
    SET search_path TO 'public', 'pg_temp'
    AS $$
    SELECT run.id, run.feed_id, run.stamp
    FROM sync_runs run JOIN feeds feed ON feed.id = run.feed_id
    WHERE run.outcome = 'running' AND EXISTS (
        SELECT FROM pg_locks lock
        WHERE lock.locktype = 'advisory' AND lock.granted AND lock.classid = 1181050212
            AND lock.objid = (hashtext(feed.name)::bigint & 4294967295)::oid
            AND lock.database = (SELECT own.oid FROM pg_database own WHERE own.datname = current_database())
    )
$$;

CREATE FUNCTION public.href_escape(id text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $_$
    SELECT string_agg(
        CASE WHEN piece ~ '^[A-Za-z0-9._~-]$' THEN piece
        ELSE upper(regexp_replace(encode(convert_to(piece, 'UTF8'), 'hex'), '(..)', '%\1', 'g')) END,
        '' ORDER BY place)
    FROM regexp_split_to_table(id, '') WITH ORDINALITY AS pieces (piece, place)
$_$;

CREATE FUNCTION public.limit_grants(vendor integer, given public.vendor_grants[]) RETURNS SETOF public.vendor_grants
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    AS $$
    SELECT given.* FROM unnest(given) given LEFT JOIN agreements agreed ON agreed.vendor_id = vendor
    WHERE agreed.vendor_id IS NULL OR given.school_id = ANY (agreed.schools)
        OR CASE
            WHEN given.school_id IS NULL THEN given.district_id
            -- A school that has moved to another district is not of the agreed one any more.
            ELSE (SELECT school.district_id FROM orgs school WHERE school.sourced_id = given.school_id)
        END = ANY (agreed.districts)
    UNION ALL
    SELECT given.id, given.vendor_id, given.district_id, school.sourced_id, given.students, given.classes, given.staff,
        given.guardians
    FROM unnest(given) given
    JOIN agreements agreed ON agreed.vendor_id = vendor
    JOIN orgs school ON school.sourced_id = ANY (agreed.schools) AND school.district_id = given.district_id
    WHERE given.school_id IS NULL AND given.staff IS NULL AND given.district_id <> ALL (agreed.districts)
$$;

CREATE FUNCTION public.next_stamp() RETURNS timestamp with time zone
    LANGUAGE sql
    SET search_path TO 'public', 'pg_temp'
    AS $$
    SELECT greatest(
        date_trunc('milliseconds', clock_timestamp()),
        interval '1 millisecond' + (SELECT as_of FROM roster_state),
        interval '1 millisecond' + (SELECT max(floor) FROM vendors),
        interval '1 millisecond' + (SELECT max(floor) FROM oauth_clients),
        interval '1 millisecond' + (SELECT max(greatest(since, until)) FROM kept_people)
    )
$$;

CREATE FUNCTION public.note_ended_agreements() RETURNS void
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    AS $$
    UPDATE agreements SET ended_at = clock_timestamp() WHERE ended_at IS NULL AND ends_at <= clock_timestamp()
$$;

CREATE FUNCTION public.number_people(hashes bytea, day date) RETURNS integer[]
    LANGUAGE sql
    SET enable_nestloop TO 'off'
    SET work_mem TO '64MB'
    AS $$
    WITH shown AS MATERIALIZED (
        SELECT hash, number
        FROM (SELECT substring(hashes, start, 6) AS hash FROM generate_series(1, octet_length(hashes), 6) AS start) one
        LEFT JOIN audit_people USING (hash)
    ), given AS (
        INSERT INTO audit_people (hash, last_day)
        SELECT hash, day FROM shown WHERE number IS NULL ORDER BY hash
        RETURNING number
    ), seen AS (
        UPDATE audit_people SET last_day = day WHERE last_day < day - 7 AND number IN (SELECT number FROM shown)
    )
    SELECT coalesce(array_agg(number), '{}')
    FROM (SELECT number FROM shown WHERE number IS NOT NULL UNION ALL SELECT number FROM given) both_of
$$;

CREATE FUNCTION public.read_window(name text, most integer, seconds double precision, OUT wait double precision, OUT hits integer) RETURNS record
    LANGUAGE plpgsql STABLE
    AS $$
DECLARE
    instant timestamptz := clock_timestamp();
    edge timestamptz := instant - make_interval(secs => seconds);
    oldest timestamptz;
BEGIN
    SELECT hit_at, most INTO oldest, hits FROM rate_hits
    WHERE key = name AND hit_at > edge AND hit_at <= instant
    AND slot = (SELECT window_of.hits % most FROM rate_windows AS window_of WHERE window_of.key = name);
    IF NOT FOUND THEN
        SELECT min(hit_at), count(*) INTO oldest, hits FROM rate_hits
        WHERE key = name AND hit_at > edge AND hit_at <= instant;
    END IF;
    wait := extract(epoch FROM coalesce(oldest, instant) - edge);
END
$$;

CREATE FUNCTION public.refresh_visible_orgs(vendor integer, new_orgs text[] DEFAULT '{}'::text[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    AS $$
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

CREATE FUNCTION public.take_hits(name text, most integer, seconds double precision, amount integer) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
DECLARE
    taken bigint;
    instant timestamptz;
BEGIN
    IF amount > most THEN
        RETURN false;
    END IF;
    SELECT hits INTO taken FROM rate_windows WHERE key = name FOR UPDATE;
    IF NOT FOUND THEN
        INSERT INTO rate_windows AS made (key, hits, last_hit) VALUES (name, 0, clock_timestamp())
        ON CONFLICT (key) DO UPDATE SET hits = made.hits RETURNING hits INTO taken;
    END IF;
    instant := clock_timestamp();
    IF EXISTS (
        SELECT FROM rate_hits
        WHERE key = name AND slot = (taken + amount - 1) % most
        AND hit_at > instant - make_interval(secs => seconds) AND hit_at <= instant
    ) THEN
        RETURN false;
    END IF;
    INSERT INTO rate_hits (key, slot, hit_at)
    SELECT name, (taken + number) % most, instant FROM generate_series(0, amount - 1) AS number
    ON CONFLICT (key, slot) DO UPDATE SET hit_at = excluded.hit_at;
    UPDATE rate_windows SET hits = taken + amount, last_hit = instant WHERE key = name;
    RETURN true;
END
$$;

CREATE FUNCTION public.use_secret_link(link bytea, secret bytea, address text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    AS $$
DECLARE
    changed oauth_clients;
    vendor_email text;
BEGIN
    UPDATE oauth_clients asking
    SET secret_hash = secret, previous_secret_hash = NULL, previous_secret_ends_at = NULL, secret_expires_at = NULL,
        version = asking.version + 1, link_used_at = now(), link_used_from = address
    FROM vendors holder
    WHERE asking.link_hash = link AND asking.link_used_at IS NULL AND asking.link_ends_at > now()
        AND asking.enabled AND asking.secret_salt IS NULL AND holder.id = asking.vendor_id AND holder.enabled
        AND coalesce(find_agreement_refusal(holder.id), '') NOT LIKE 'ended%'
    RETURNING asking.* INTO changed;
    IF changed.client_id IS NULL THEN
        RETURN NULL;
    END IF;
    SELECT email INTO vendor_email FROM vendors WHERE id = changed.vendor_id;
    INSERT INTO changes (actor_kind, actor, verb, kind, subject, vendor, after)
    VALUES ('vendor', vendor_email, 'client use-link', 'client', changed.client_id, vendor_email,
        jsonb_build_object('from', address));
    RETURN changed.client_id;
END
$$;

CREATE TABLE public.academic_sessions (
    sourced_id text NOT NULL COLLATE pg_catalog."C",
    feed_id integer NOT NULL,
    status text NOT NULL COLLATE pg_catalog."C",
    date_last_modified timestamp(3) with time zone NOT NULL,
    title text NOT NULL COLLATE pg_catalog."C",
    start_date date NOT NULL,
    end_date date NOT NULL,
    type text NOT NULL COLLATE pg_catalog."C",
    parent_id text COLLATE pg_catalog."C",
    school_year text NOT NULL COLLATE pg_catalog."C",
    fingerprint bigint,
    CONSTRAINT ck_academic_sessions_status CHECK ((status = ANY (ARRAY['active'::text, 'tobedeleted'::text])))
);

CREATE TABLE public.agreements (
    vendor_id integer NOT NULL,
    title text NOT NULL COLLATE pg_catalog."C",
    purpose text NOT NULL COLLATE pg_catalog."C",
    elements text[] NOT NULL COLLATE pg_catalog."C",
    fields text[] NOT NULL COLLATE pg_catalog."C",
    scopes text[] NOT NULL COLLATE pg_catalog."C",
    flags text[] NOT NULL COLLATE pg_catalog."C",
    metadata_keys text[] NOT NULL COLLATE pg_catalog."C",
    districts text[] NOT NULL COLLATE pg_catalog."C",
    schools text[] NOT NULL COLLATE pg_catalog."C",
    zone text NOT NULL COLLATE pg_catalog."C",
    starts_at timestamp(3) with time zone NOT NULL,
    ends_at timestamp(3) with time zone NOT NULL,
    ended_at timestamp(3) with time zone,
    told_days integer,
    contact text NOT NULL COLLATE pg_catalog."C",
    address text NOT NULL COLLATE pg_catalog."C",
    subcontractors text NOT NULL COLLATE pg_catalog."C",
    deletion text NOT NULL COLLATE pg_catalog."C",
    link text NOT NULL COLLATE pg_catalog."C",
    CONSTRAINT ck_agreements_lasts CHECK ((starts_at < ends_at))
);

CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);

CREATE TABLE public.api_keys (
    key_hash bytea NOT NULL,
    vendor_id integer NOT NULL,
    prefix text NOT NULL COLLATE pg_catalog."C",
    created_at timestamp(3) with time zone DEFAULT now() NOT NULL,
    expires_at timestamp(3) with time zone
);

CREATE TABLE public.audit (
    id bigint NOT NULL,
    at timestamp(3) with time zone NOT NULL,
    vendor_id integer NOT NULL,
    caller text NOT NULL COLLATE pg_catalog."C",
    method text NOT NULL COLLATE pg_catalog."C",
    path text NOT NULL COLLATE pg_catalog."C",
    filter text COLLATE pg_catalog."C",
    records integer NOT NULL,
    request_id text NOT NULL COLLATE pg_catalog."C",
    address text COLLATE pg_catalog."C",
    scope text COLLATE pg_catalog."C",
    districts text[] COLLATE pg_catalog."C",
    entry_id uuid,
    people bytea NOT NULL,
    parts integer NOT NULL
);
ALTER TABLE ONLY public.audit ALTER COLUMN people SET STORAGE MAIN;

CREATE TABLE public.audit_days (
    id bigint NOT NULL,
    vendor_id integer NOT NULL,
    caller text NOT NULL COLLATE pg_catalog."C",
    method text NOT NULL COLLATE pg_catalog."C",
    path text NOT NULL COLLATE pg_catalog."C",
    filter text COLLATE pg_catalog."C",
    address text COLLATE pg_catalog."C",
    scope text COLLATE pg_catalog."C",
    districts text[] COLLATE pg_catalog."C",
    hash_check bytea NOT NULL,
    at timestamp(3) with time zone NOT NULL,
    last_at timestamp(3) with time zone NOT NULL,
    request_id text NOT NULL COLLATE pg_catalog."C",
    last_request_id text NOT NULL COLLATE pg_catalog."C",
    answers integer NOT NULL,
    records bigint NOT NULL,
    entries bytea NOT NULL,
    people integer[],
    people_bits bytea,
    people_of_day integer NOT NULL,
    parts integer NOT NULL
);
ALTER TABLE ONLY public.audit_days ALTER COLUMN entries SET STORAGE EXTERNAL;
ALTER TABLE ONLY public.audit_days ALTER COLUMN people_bits SET STORAGE EXTERNAL;

ALTER TABLE public.audit_days ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.audit_days_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE public.audit ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.audit_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.audit_people (
    number integer NOT NULL,
    hash bytea NOT NULL,
    last_day date NOT NULL
);

ALTER TABLE public.audit_people ALTER COLUMN number ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.audit_people_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.changes (
    id bigint NOT NULL,
    at timestamp(3) with time zone DEFAULT now() NOT NULL,
    actor_kind text NOT NULL COLLATE pg_catalog."C",
    actor text NOT NULL COLLATE pg_catalog."C",
    verb text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    vendor text COLLATE pg_catalog."C",
    feed text COLLATE pg_catalog."C",
    before jsonb,
    after jsonb,
    reason text COLLATE pg_catalog."C",
    form text COLLATE pg_catalog."C"
);

ALTER TABLE public.changes ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.changes_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.classes (
    sourced_id text NOT NULL COLLATE pg_catalog."C",
    feed_id integer NOT NULL,
    status text NOT NULL COLLATE pg_catalog."C",
    date_last_modified timestamp(3) with time zone NOT NULL,
    title text NOT NULL COLLATE pg_catalog."C",
    class_code text COLLATE pg_catalog."C",
    class_type text COLLATE pg_catalog."C",
    location text COLLATE pg_catalog."C",
    grades text[] COLLATE pg_catalog."C",
    course_id text NOT NULL COLLATE pg_catalog."C",
    school_id text NOT NULL COLLATE pg_catalog."C",
    term_ids text[] COLLATE pg_catalog."C",
    subjects text[] COLLATE pg_catalog."C",
    subject_codes text[] COLLATE pg_catalog."C",
    periods text[] COLLATE pg_catalog."C",
    fingerprint bigint,
    label_id integer,
    teachers_changed timestamp(3) with time zone,
    ended_by_need boolean,
    CONSTRAINT ck_classes_status CHECK ((status = ANY (ARRAY['active'::text, 'tobedeleted'::text])))
);

CREATE TABLE public.courses (
    sourced_id text NOT NULL COLLATE pg_catalog."C",
    feed_id integer NOT NULL,
    status text NOT NULL COLLATE pg_catalog."C",
    date_last_modified timestamp(3) with time zone NOT NULL,
    title text NOT NULL COLLATE pg_catalog."C",
    school_year_id text COLLATE pg_catalog."C",
    course_code text COLLATE pg_catalog."C",
    grades text[] COLLATE pg_catalog."C",
    org_id text NOT NULL COLLATE pg_catalog."C",
    subjects text[] COLLATE pg_catalog."C",
    subject_codes text[] COLLATE pg_catalog."C",
    fingerprint bigint,
    label_id integer,
    ended_by_need boolean,
    CONSTRAINT ck_courses_status CHECK ((status = ANY (ARRAY['active'::text, 'tobedeleted'::text])))
);

CREATE TABLE public.deletion_requests (
    id integer NOT NULL,
    vendor_id integer NOT NULL,
    person bytea,
    asked date NOT NULL,
    due date NOT NULL,
    answered date,
    words text NOT NULL COLLATE pg_catalog."C"
);

ALTER TABLE public.deletion_requests ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.deletion_requests_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.deliveries (
    id integer NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    vendor_id integer NOT NULL,
    client_id text NOT NULL COLLATE pg_catalog."C",
    preset text NOT NULL COLLATE pg_catalog."C",
    host text NOT NULL COLLATE pg_catalog."C",
    port integer NOT NULL,
    username text NOT NULL COLLATE pg_catalog."C",
    folder text NOT NULL COLLATE pg_catalog."C",
    host_key text NOT NULL COLLATE pg_catalog."C",
    has_private_key boolean NOT NULL,
    secret_sealed bytea NOT NULL,
    hour smallint,
    in_place boolean NOT NULL,
    contact text COLLATE pg_catalog."C",
    approved_digest text COLLATE pg_catalog."C",
    stopped boolean DEFAULT false NOT NULL,
    since timestamp(3) with time zone DEFAULT now() NOT NULL
);

ALTER TABLE public.deliveries ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.deliveries_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.delivery_runs (
    id bigint NOT NULL,
    delivery_id integer NOT NULL,
    started_at timestamp(3) with time zone DEFAULT now() NOT NULL,
    finished_at timestamp(3) with time zone,
    state text NOT NULL COLLATE pg_catalog."C",
    message text COLLATE pg_catalog."C",
    revision bigint,
    digest text COLLATE pg_catalog."C",
    bytes bigint,
    seconds real,
    rows jsonb,
    schools jsonb,
    sample jsonb,
    file_name text COLLATE pg_catalog."C",
    uploaded_at timestamp(3) with time zone,
    CONSTRAINT ck_delivery_runs_state CHECK ((state = ANY (ARRAY['made'::text, 'waiting'::text, 'sent'::text, 'failed'::text])))
);

ALTER TABLE public.delivery_runs ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.delivery_runs_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.demographics (
    sourced_id text NOT NULL COLLATE pg_catalog."C",
    feed_id integer NOT NULL,
    status text NOT NULL COLLATE pg_catalog."C",
    date_last_modified timestamp(3) with time zone NOT NULL,
    metadata jsonb,
    birth_date date,
    sex text COLLATE pg_catalog."C",
    american_indian_or_alaska_native boolean,
    asian boolean,
    black_or_african_american boolean,
    native_hawaiian_or_other_pacific_islander boolean,
    white boolean,
    demographic_race_two_or_more_races boolean,
    hispanic_or_latino_ethnicity boolean,
    country_of_birth_code text COLLATE pg_catalog."C",
    state_of_birth_abbreviation text COLLATE pg_catalog."C",
    city_of_birth text COLLATE pg_catalog."C",
    public_school_residence_status text COLLATE pg_catalog."C",
    fingerprint bigint,
    label_id integer,
    ended_by_need boolean,
    CONSTRAINT ck_demographics_status CHECK ((status = ANY (ARRAY['active'::text, 'tobedeleted'::text])))
);

CREATE TABLE public.departures (
    type text NOT NULL COLLATE pg_catalog."C",
    sourced_id text NOT NULL COLLATE pg_catalog."C",
    label_id integer NOT NULL,
    feed_id integer NOT NULL,
    person_id text COLLATE pg_catalog."C",
    departed_at timestamp(3) with time zone NOT NULL,
    group_id integer DEFAULT 0 NOT NULL,
    org_id text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    role text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    vendor_id integer DEFAULT 0 NOT NULL
);

CREATE VIEW public.disclosures AS
 SELECT 'page'::text AS by,
    audit.id,
    audit.vendor_id,
    audit.caller,
    audit.method,
    audit.path,
    audit.filter,
    audit.address,
    audit.scope,
    audit.districts,
    "substring"(audit.people, 1, 6) AS hash_check,
    audit.at,
    audit.at AS last_at,
    audit.request_id,
    audit.request_id AS last_request_id,
    1 AS answers,
    (audit.records)::bigint AS records,
    uuid_send(audit.entry_id) AS entries,
    NULL::integer[] AS people,
    NULL::bytea AS people_bits,
    audit.parts,
    audit.people AS hashes
   FROM public.audit
UNION ALL
 SELECT 'day'::text AS by,
    (- audit_days.id) AS id,
    audit_days.vendor_id,
    audit_days.caller,
    audit_days.method,
    audit_days.path,
    audit_days.filter,
    audit_days.address,
    audit_days.scope,
    audit_days.districts,
    audit_days.hash_check,
    audit_days.at,
    audit_days.last_at,
    audit_days.request_id,
    audit_days.last_request_id,
    audit_days.answers,
    audit_days.records,
    audit_days.entries,
    audit_days.people,
    audit_days.people_bits,
    audit_days.parts,
    NULL::bytea AS hashes
   FROM public.audit_days;

CREATE TABLE public.enrollments (
    sourced_id text NOT NULL COLLATE pg_catalog."C",
    feed_id integer NOT NULL,
    status text NOT NULL COLLATE pg_catalog."C",
    date_last_modified timestamp(3) with time zone NOT NULL,
    user_id text NOT NULL COLLATE pg_catalog."C",
    class_id text NOT NULL COLLATE pg_catalog."C",
    school_id text NOT NULL COLLATE pg_catalog."C",
    role text NOT NULL COLLATE pg_catalog."C",
    "primary" boolean,
    begin_date date,
    end_date date,
    fingerprint bigint,
    label_id integer,
    school_opens boolean,
    ended_by_need boolean,
    CONSTRAINT ck_enrollments_status CHECK ((status = ANY (ARRAY['active'::text, 'tobedeleted'::text])))
);
ALTER TABLE ONLY public.enrollments ALTER COLUMN user_id SET (n_distinct=-0.1);

CREATE TABLE public.exclusions (
    id_hash bytea NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    key_check bytea NOT NULL,
    sourced_id text COLLATE pg_catalog."C",
    at timestamp(3) with time zone DEFAULT now() NOT NULL,
    CONSTRAINT ck_exclusions_erased_id CHECK (((kind = 'hidden'::text) OR (sourced_id IS NULL))),
    CONSTRAINT ck_exclusions_kind CHECK ((kind = ANY (ARRAY['erased'::text, 'hidden'::text])))
);

CREATE TABLE public.feeds (
    id integer NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    format text NOT NULL COLLATE pg_catalog."C",
    path text COLLATE pg_catalog."C",
    enabled boolean DEFAULT true NOT NULL,
    hold_tombstones_percent smallint,
    hold_changes_percent smallint,
    created_at timestamp(3) with time zone DEFAULT now() NOT NULL,
    last_digest bytea,
    fingerprinted boolean DEFAULT false NOT NULL,
    hold_rejected_percent smallint,
    marker text COLLATE pg_catalog."C",
    pause_from date,
    pause_until date,
    pause_reason text COLLATE pg_catalog."C",
    alerted text COLLATE pg_catalog."C",
    alerted_message text COLLATE pg_catalog."C",
    alerted_at timestamp(3) with time zone,
    alerted_channels text[] DEFAULT '{}'::text[] NOT NULL COLLATE pg_catalog."C",
    state text DEFAULT 'added'::text NOT NULL COLLATE pg_catalog."C",
    strict boolean DEFAULT false NOT NULL,
    words text COLLATE pg_catalog."C",
    revision bigint DEFAULT 0 NOT NULL,
    as_of timestamp(3) with time zone DEFAULT '1970-01-01 00:00:00+00'::timestamp with time zone NOT NULL,
    deletions_since timestamp(3) with time zone DEFAULT '1970-01-01 00:00:00+00'::timestamp with time zone NOT NULL,
    day_first text[] DEFAULT '{}'::text[] NOT NULL COLLATE pg_catalog."C",
    CONSTRAINT ck_feeds_state CHECK ((state = ANY (ARRAY['tried'::text, 'added'::text, 'removed'::text])))
);

ALTER TABLE public.feeds ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.feeds_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.group_members (
    group_id integer NOT NULL,
    type text NOT NULL COLLATE pg_catalog."C",
    sourced_id text NOT NULL COLLATE pg_catalog."C",
    org_id text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    role text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    since timestamp(3) with time zone NOT NULL
);

CREATE TABLE public.kept_people (
    vendor_id integer NOT NULL,
    user_id text NOT NULL COLLATE pg_catalog."C",
    since timestamp(3) with time zone NOT NULL,
    until timestamp(3) with time zone,
    named_by text[] DEFAULT '{}'::text[] NOT NULL COLLATE pg_catalog."C",
    key uuid NOT NULL
);

CREATE TABLE public.last_uses (
    vendor_id integer NOT NULL,
    caller text NOT NULL COLLATE pg_catalog."C",
    used_at timestamp(3) with time zone NOT NULL,
    address text COLLATE pg_catalog."C"
);

CREATE TABLE public.oauth1_nonces (
    stamp bigint NOT NULL,
    client_id text NOT NULL COLLATE pg_catalog."C",
    nonce text NOT NULL COLLATE pg_catalog."C"
);

CREATE TABLE public.oauth_clients (
    client_id text NOT NULL COLLATE pg_catalog."C",
    vendor_id integer NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    secret_hash bytea NOT NULL,
    scopes text[] NOT NULL COLLATE pg_catalog."C",
    enabled boolean DEFAULT true NOT NULL,
    version integer DEFAULT 1 NOT NULL,
    created_at timestamp(3) with time zone DEFAULT now() NOT NULL,
    previous_secret_hash bytea,
    previous_secret_ends_at timestamp(3) with time zone,
    secret_salt bytea,
    previous_secret_salt bytea,
    secret_expires_at timestamp(3) with time zone,
    floor timestamp(3) with time zone DEFAULT '1970-01-01 00:00:00+00'::timestamp with time zone NOT NULL,
    as_of timestamp(3) with time zone DEFAULT '1970-01-01 00:00:00+00'::timestamp with time zone NOT NULL,
    link_hash bytea,
    link_ends_at timestamp(3) with time zone,
    link_used_at timestamp(3) with time zone,
    link_used_from text COLLATE pg_catalog."C"
);

CREATE TABLE public.operator_sessions (
    id integer NOT NULL,
    operator_id integer NOT NULL,
    token_hash bytea NOT NULL,
    created_at timestamp(3) with time zone DEFAULT now() NOT NULL,
    used_at timestamp(3) with time zone DEFAULT now() NOT NULL,
    address text COLLATE pg_catalog."C",
    browser text COLLATE pg_catalog."C"
);

ALTER TABLE public.operator_sessions ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.operator_sessions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.operators (
    id integer NOT NULL,
    email text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    role text NOT NULL COLLATE pg_catalog."C",
    enabled boolean DEFAULT true NOT NULL,
    password_hash text COLLATE pg_catalog."C",
    link uuid,
    created_at timestamp(3) with time zone DEFAULT now() NOT NULL,
    code_key_sealed bytea,
    code_step bigint,
    directory_subject text COLLATE pg_catalog."C",
    CONSTRAINT ck_operators_role CHECK ((role = ANY (ARRAY['observer'::text, 'viewer'::text, 'editor'::text, 'owner'::text])))
);

ALTER TABLE public.operators ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.operators_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.ordering_chunks (
    ordering_id bigint NOT NULL,
    number integer NOT NULL,
    ids text[] NOT NULL COLLATE pg_catalog."C"
);
ALTER TABLE ONLY public.ordering_chunks ALTER COLUMN ids SET STORAGE EXTERNAL;

CREATE TABLE public.orderings (
    id bigint NOT NULL,
    query bytea NOT NULL,
    visible_set text NOT NULL COLLATE pg_catalog."C",
    revision bigint NOT NULL,
    vendor_id integer NOT NULL,
    total bigint NOT NULL,
    bytes bigint,
    made_at timestamp with time zone DEFAULT now() NOT NULL,
    feed_id integer NOT NULL
);

ALTER TABLE public.orderings ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.orderings_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.orgs (
    sourced_id text NOT NULL COLLATE pg_catalog."C",
    feed_id integer NOT NULL,
    status text NOT NULL COLLATE pg_catalog."C",
    date_last_modified timestamp(3) with time zone NOT NULL,
    metadata jsonb,
    name text NOT NULL COLLATE pg_catalog."C",
    type text NOT NULL COLLATE pg_catalog."C",
    identifier text COLLATE pg_catalog."C",
    parent_id text COLLATE pg_catalog."C",
    district_id text COLLATE pg_catalog."C",
    fingerprint bigint,
    CONSTRAINT ck_orgs_status CHECK ((status = ANY (ARRAY['active'::text, 'tobedeleted'::text])))
);

CREATE TABLE public.published_vendors (
    district_id text NOT NULL COLLATE pg_catalog."C",
    vendor_id integer NOT NULL,
    district text NOT NULL COLLATE pg_catalog."C",
    body jsonb NOT NULL,
    ends_at timestamp(3) with time zone
);

CREATE TABLE public.pulls (
    caller text NOT NULL COLLATE pg_catalog."C",
    asked bytea NOT NULL,
    revision bigint NOT NULL,
    view text NOT NULL COLLATE pg_catalog."C",
    as_of timestamp(3) with time zone NOT NULL,
    deletions_since timestamp(3) with time zone NOT NULL,
    query bytea NOT NULL,
    feed_ids integer[] NOT NULL,
    visible_sets text[] NOT NULL COLLATE pg_catalog."C",
    feed_revisions bigint[] NOT NULL,
    begun_at timestamp with time zone NOT NULL,
    ends_at timestamp with time zone NOT NULL
);

CREATE TABLE public.quality_counts (
    feed_id integer NOT NULL,
    revision bigint NOT NULL,
    counted_at timestamp(3) with time zone DEFAULT now() NOT NULL,
    totals jsonb NOT NULL,
    schools jsonb
);

CREATE UNLOGGED TABLE public.rate_hits (
    key text NOT NULL COLLATE pg_catalog."C",
    slot integer NOT NULL,
    hit_at timestamp with time zone NOT NULL
);

CREATE UNLOGGED TABLE public.rate_windows (
    key text NOT NULL COLLATE pg_catalog."C",
    hits bigint NOT NULL,
    last_hit timestamp with time zone NOT NULL
);

CREATE TABLE public.refused_requests (
    vendor_id integer NOT NULL,
    hour timestamp(3) with time zone NOT NULL,
    caller text NOT NULL COLLATE pg_catalog."C",
    status integer NOT NULL,
    cause text NOT NULL COLLATE pg_catalog."C",
    endpoint text NOT NULL COLLATE pg_catalog."C",
    requests bigint NOT NULL,
    first_at timestamp(3) with time zone NOT NULL,
    first_request_id text NOT NULL COLLATE pg_catalog."C",
    last_at timestamp(3) with time zone NOT NULL,
    last_request_id text NOT NULL COLLATE pg_catalog."C",
    addresses text[] NOT NULL COLLATE pg_catalog."C",
    fields text[] NOT NULL COLLATE pg_catalog."C"
);

CREATE TABLE public.roster_state (
    singleton boolean DEFAULT true NOT NULL,
    revision bigint NOT NULL,
    as_of timestamp(3) with time zone NOT NULL,
    deletions_since timestamp(3) with time zone NOT NULL,
    salt uuid DEFAULT gen_random_uuid() NOT NULL,
    role_base text COLLATE pg_catalog."C",
    generation integer DEFAULT 1 NOT NULL,
    server text COLLATE pg_catalog."C",
    sync_channels text[] COLLATE pg_catalog."C",
    CONSTRAINT ck_roster_state_singleton CHECK (singleton)
);

CREATE TABLE public.signing_keys (
    key_id text NOT NULL COLLATE pg_catalog."C",
    public_jwk jsonb NOT NULL,
    private_sealed bytea NOT NULL,
    created_at timestamp(3) with time zone DEFAULT now() NOT NULL,
    retired_at timestamp(3) with time zone
);

CREATE TABLE public.sync_changes (
    run_id bigint NOT NULL,
    type text NOT NULL COLLATE pg_catalog."C",
    sourced_id text NOT NULL COLLATE pg_catalog."C",
    change text NOT NULL COLLATE pg_catalog."C",
    previous_stamp timestamp(3) with time zone NOT NULL,
    fields jsonb
);

CREATE TABLE public.sync_rejections (
    run_id bigint NOT NULL,
    number integer NOT NULL,
    file text NOT NULL COLLATE pg_catalog."C",
    line integer,
    header text COLLATE pg_catalog."C",
    value text COLLATE pg_catalog."C",
    reason text NOT NULL COLLATE pg_catalog."C",
    sourced_id text COLLATE pg_catalog."C",
    cause integer,
    is_consequence boolean DEFAULT false NOT NULL,
    records jsonb DEFAULT '[]'::jsonb NOT NULL
);

CREATE TABLE public.sync_runs (
    id bigint NOT NULL,
    feed_id integer NOT NULL,
    format text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL COLLATE pg_catalog."C",
    started_at timestamp(3) with time zone NOT NULL,
    finished_at timestamp(3) with time zone,
    stamp timestamp(3) with time zone,
    outcome text NOT NULL COLLATE pg_catalog."C",
    counts jsonb NOT NULL,
    seconds jsonb NOT NULL,
    message text COLLATE pg_catalog."C",
    rejected integer DEFAULT 0 NOT NULL,
    kept_export text COLLATE pg_catalog."C",
    notices text[] DEFAULT '{}'::text[] NOT NULL COLLATE pg_catalog."C",
    kept_digest bytea,
    approves bigint,
    undoes bigint,
    causes jsonb DEFAULT '[]'::jsonb NOT NULL,
    has_changes boolean DEFAULT false NOT NULL,
    preview jsonb,
    files jsonb DEFAULT '[]'::jsonb NOT NULL,
    actor text COLLATE pg_catalog."C",
    written_at timestamp(3) with time zone,
    CONSTRAINT ck_sync_runs_outcome CHECK ((outcome = ANY (ARRAY['running'::text, 'done'::text, 'unchanged'::text, 'partial'::text, 'stale'::text, 'held'::text, 'approved'::text, 'discarded'::text, 'replaced'::text, 'refused'::text, 'missing'::text, 'incomplete'::text, 'failed'::text, 'interrupted'::text])))
);

ALTER TABLE public.sync_runs ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.sync_runs_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.usage (
    vendor_id integer NOT NULL,
    day date NOT NULL,
    endpoint text NOT NULL COLLATE pg_catalog."C",
    status_class text NOT NULL COLLATE pg_catalog."C",
    requests bigint NOT NULL,
    records bigint NOT NULL,
    bytes bigint NOT NULL
);

CREATE TABLE public.user_agents (
    user_id text NOT NULL COLLATE pg_catalog."C",
    ordinal smallint NOT NULL,
    agent_id text NOT NULL COLLATE pg_catalog."C"
);

CREATE TABLE public.user_profiles (
    user_id text NOT NULL COLLATE pg_catalog."C",
    profile_id text NOT NULL COLLATE pg_catalog."C",
    profile_type text NOT NULL COLLATE pg_catalog."C",
    vendor_id text NOT NULL COLLATE pg_catalog."C",
    application_id text COLLATE pg_catalog."C",
    description text COLLATE pg_catalog."C",
    credentials jsonb,
    taken_back boolean
);

CREATE TABLE public.user_roles (
    user_id text NOT NULL COLLATE pg_catalog."C",
    ordinal smallint NOT NULL,
    org_id text NOT NULL COLLATE pg_catalog."C",
    role text NOT NULL COLLATE pg_catalog."C",
    role_type text NOT NULL COLLATE pg_catalog."C",
    begin_date date,
    end_date date,
    profile_id text COLLATE pg_catalog."C",
    origin text NOT NULL COLLATE pg_catalog."C",
    row_id text COLLATE pg_catalog."C",
    taken_back boolean,
    CONSTRAINT ck_user_roles_origin CHECK ((origin = ANY (ARRAY['export'::text, 'enrollment'::text]))),
    CONSTRAINT ck_user_roles_role_type CHECK ((role_type = ANY (ARRAY['primary'::text, 'secondary'::text])))
);

CREATE TABLE public.users (
    sourced_id text NOT NULL COLLATE pg_catalog."C",
    feed_id integer NOT NULL,
    status text NOT NULL COLLATE pg_catalog."C",
    date_last_modified timestamp(3) with time zone NOT NULL,
    metadata jsonb,
    user_master_identifier text COLLATE pg_catalog."C",
    username text COLLATE pg_catalog."C",
    user_ids jsonb,
    enabled_user boolean NOT NULL,
    given_name text NOT NULL COLLATE pg_catalog."C",
    family_name text NOT NULL COLLATE pg_catalog."C",
    middle_name text COLLATE pg_catalog."C",
    preferred_first_name text COLLATE pg_catalog."C",
    preferred_middle_name text COLLATE pg_catalog."C",
    preferred_last_name text COLLATE pg_catalog."C",
    pronouns text COLLATE pg_catalog."C",
    primary_org_id text COLLATE pg_catalog."C",
    identifier text COLLATE pg_catalog."C",
    email text COLLATE pg_catalog."C",
    sms text COLLATE pg_catalog."C",
    phone text COLLATE pg_catalog."C",
    grades text[] COLLATE pg_catalog."C",
    fingerprint bigint,
    label_id integer,
    parts_changed timestamp(3) with time zone,
    CONSTRAINT ck_users_status CHECK ((status = ANY (ARRAY['active'::text, 'tobedeleted'::text])))
);

CREATE TABLE public.vendor_defaults (
    singleton boolean DEFAULT true NOT NULL,
    withheld text[] DEFAULT '{}'::text[] NOT NULL COLLATE pg_catalog."C",
    agreement_required boolean DEFAULT false NOT NULL,
    published boolean DEFAULT false NOT NULL,
    CONSTRAINT ck_vendor_defaults_singleton CHECK (singleton)
);

ALTER TABLE public.vendor_grants ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.vendor_grants_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.vendors (
    id integer NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    email text NOT NULL COLLATE pg_catalog."C",
    enabled boolean DEFAULT true NOT NULL,
    grant_version integer DEFAULT 1 NOT NULL,
    visibility_key uuid DEFAULT gen_random_uuid() NOT NULL,
    created_at timestamp(3) with time zone DEFAULT now() NOT NULL,
    password_hash text COLLATE pg_catalog."C",
    flags text[] DEFAULT '{}'::text[] NOT NULL COLLATE pg_catalog."C",
    requests_per_second integer,
    burst integer,
    requests_per_day integer,
    rostering_per_second integer,
    rostering_burst integer,
    rostering_at_once integer,
    withheld text[] COLLATE pg_catalog."C",
    floor timestamp(3) with time zone DEFAULT '1970-01-01 00:00:00+00'::timestamp with time zone NOT NULL,
    has_rules boolean DEFAULT false NOT NULL
);

ALTER TABLE public.vendors ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.vendors_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.visibility_labels (
    id integer NOT NULL,
    feed_id integer NOT NULL,
    digest bytea NOT NULL,
    all_orgs text[] NOT NULL COLLATE pg_catalog."C",
    any_orgs text[] NOT NULL COLLATE pg_catalog."C",
    guardian_orgs text[] NOT NULL COLLATE pg_catalog."C",
    listed_orgs text[] NOT NULL COLLATE pg_catalog."C",
    student_orgs text[] NOT NULL COLLATE pg_catalog."C",
    teacher_orgs text[] NOT NULL COLLATE pg_catalog."C"
);

ALTER TABLE public.visibility_labels ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.visibility_labels_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.visible_feeds (
    vendor_id integer NOT NULL,
    feed_id integer NOT NULL,
    key uuid NOT NULL,
    visible_set text NOT NULL COLLATE pg_catalog."C",
    revision bigint NOT NULL,
    as_of timestamp(3) with time zone NOT NULL,
    deletions_since timestamp(3) with time zone NOT NULL,
    floor timestamp(3) with time zone DEFAULT '1970-01-01 00:00:00+00'::timestamp with time zone NOT NULL,
    first_departure timestamp(3) with time zone
);

CREATE TABLE public.visible_groups (
    vendor_id integer NOT NULL,
    group_id integer NOT NULL,
    key uuid NOT NULL
);

CREATE TABLE public.visible_labels (
    vendor_id integer NOT NULL,
    label_id integer NOT NULL,
    without_guardians boolean NOT NULL,
    opens_students boolean NOT NULL,
    opens_teachers boolean NOT NULL,
    key uuid NOT NULL
);

CREATE TABLE public.visible_orgs (
    vendor_id integer NOT NULL,
    org_id text NOT NULL COLLATE pg_catalog."C",
    feed_id integer NOT NULL,
    granted boolean NOT NULL,
    whole_district boolean NOT NULL,
    key uuid NOT NULL,
    district_id text COLLATE pg_catalog."C",
    district_identifier text COLLATE pg_catalog."C",
    shared boolean NOT NULL,
    narrowed boolean NOT NULL
);

ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);

ALTER TABLE ONLY public.agreements
    ADD CONSTRAINT pk_agreements PRIMARY KEY (vendor_id);

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT pk_api_keys PRIMARY KEY (key_hash);

ALTER TABLE ONLY public.audit
    ADD CONSTRAINT pk_audit PRIMARY KEY (id);

ALTER TABLE ONLY public.audit_days
    ADD CONSTRAINT pk_audit_days PRIMARY KEY (id);

ALTER TABLE ONLY public.audit_people
    ADD CONSTRAINT pk_audit_people PRIMARY KEY (number);

ALTER TABLE ONLY public.changes
    ADD CONSTRAINT pk_changes PRIMARY KEY (id);

ALTER TABLE ONLY public.deletion_requests
    ADD CONSTRAINT pk_deletion_requests PRIMARY KEY (id);

ALTER TABLE ONLY public.deliveries
    ADD CONSTRAINT pk_deliveries PRIMARY KEY (id);

ALTER TABLE ONLY public.delivery_runs
    ADD CONSTRAINT pk_delivery_runs PRIMARY KEY (id);

ALTER TABLE ONLY public.departures
    ADD CONSTRAINT pk_departures PRIMARY KEY (type, sourced_id, label_id, group_id, org_id, role, vendor_id);

ALTER TABLE ONLY public.exclusions
    ADD CONSTRAINT pk_exclusions PRIMARY KEY (id_hash);

ALTER TABLE ONLY public.feeds
    ADD CONSTRAINT pk_feeds PRIMARY KEY (id);

ALTER TABLE ONLY public.group_members
    ADD CONSTRAINT pk_group_members PRIMARY KEY (type, sourced_id, group_id, org_id, role);

ALTER TABLE ONLY public.kept_people
    ADD CONSTRAINT pk_kept_people PRIMARY KEY (vendor_id, user_id, since);

ALTER TABLE ONLY public.last_uses
    ADD CONSTRAINT pk_last_uses PRIMARY KEY (vendor_id, caller);

ALTER TABLE ONLY public.oauth1_nonces
    ADD CONSTRAINT pk_oauth1_nonces PRIMARY KEY (stamp, client_id, nonce);

ALTER TABLE ONLY public.oauth_clients
    ADD CONSTRAINT pk_oauth_clients PRIMARY KEY (client_id);

ALTER TABLE ONLY public.operator_sessions
    ADD CONSTRAINT pk_operator_sessions PRIMARY KEY (id);

ALTER TABLE ONLY public.operators
    ADD CONSTRAINT pk_operators PRIMARY KEY (id);

ALTER TABLE ONLY public.ordering_chunks
    ADD CONSTRAINT pk_ordering_chunks PRIMARY KEY (ordering_id, number);

ALTER TABLE ONLY public.orderings
    ADD CONSTRAINT pk_orderings PRIMARY KEY (id);

ALTER TABLE ONLY public.published_vendors
    ADD CONSTRAINT pk_published_vendors PRIMARY KEY (district_id, vendor_id);

ALTER TABLE ONLY public.pulls
    ADD CONSTRAINT pk_pulls PRIMARY KEY (caller, asked, revision, view);

ALTER TABLE ONLY public.quality_counts
    ADD CONSTRAINT pk_quality_counts PRIMARY KEY (feed_id, revision);

ALTER TABLE ONLY public.rate_hits
    ADD CONSTRAINT pk_rate_hits PRIMARY KEY (key, slot);

ALTER TABLE ONLY public.rate_windows
    ADD CONSTRAINT pk_rate_windows PRIMARY KEY (key);

ALTER TABLE ONLY public.refused_requests
    ADD CONSTRAINT pk_refused_requests PRIMARY KEY (vendor_id, hour, caller, status, cause, endpoint);

ALTER TABLE ONLY public.roster_state
    ADD CONSTRAINT pk_roster_state PRIMARY KEY (singleton);

ALTER TABLE ONLY public.signing_keys
    ADD CONSTRAINT pk_signing_keys PRIMARY KEY (key_id);

ALTER TABLE ONLY public.sync_rejections
    ADD CONSTRAINT pk_sync_rejections PRIMARY KEY (run_id, number);

ALTER TABLE ONLY public.sync_runs
    ADD CONSTRAINT pk_sync_runs PRIMARY KEY (id);

ALTER TABLE ONLY public.usage
    ADD CONSTRAINT pk_usage PRIMARY KEY (vendor_id, day, endpoint, status_class);

ALTER TABLE ONLY public.vendor_defaults
    ADD CONSTRAINT pk_vendor_defaults PRIMARY KEY (singleton);

ALTER TABLE ONLY public.vendor_grants
    ADD CONSTRAINT pk_vendor_grants PRIMARY KEY (id);

ALTER TABLE ONLY public.vendors
    ADD CONSTRAINT pk_vendors PRIMARY KEY (id);

ALTER TABLE ONLY public.visibility_labels
    ADD CONSTRAINT pk_visibility_labels PRIMARY KEY (id);

ALTER TABLE ONLY public.visible_feeds
    ADD CONSTRAINT pk_visible_feeds PRIMARY KEY (vendor_id, feed_id);

ALTER TABLE ONLY public.visible_groups
    ADD CONSTRAINT pk_visible_groups PRIMARY KEY (vendor_id, group_id);

ALTER TABLE ONLY public.visible_labels
    ADD CONSTRAINT pk_visible_labels PRIMARY KEY (vendor_id, label_id);

ALTER TABLE ONLY public.visible_orgs
    ADD CONSTRAINT pk_visible_orgs PRIMARY KEY (vendor_id, org_id);

ALTER TABLE ONLY public.audit
    ADD CONSTRAINT uq_audit_entry_id UNIQUE (entry_id);

ALTER TABLE ONLY public.audit_people
    ADD CONSTRAINT uq_audit_people_hash UNIQUE (hash);

ALTER TABLE ONLY public.deliveries
    ADD CONSTRAINT uq_deliveries_name UNIQUE (name);

ALTER TABLE ONLY public.feeds
    ADD CONSTRAINT uq_feeds_name UNIQUE (name);

ALTER TABLE ONLY public.oauth_clients
    ADD CONSTRAINT uq_oauth_clients_link_hash UNIQUE (link_hash);

ALTER TABLE ONLY public.operator_sessions
    ADD CONSTRAINT uq_operator_sessions_token_hash UNIQUE (token_hash);

ALTER TABLE ONLY public.operators
    ADD CONSTRAINT uq_operators_email UNIQUE (email);

ALTER TABLE ONLY public.orderings
    ADD CONSTRAINT uq_orderings_query_feed_id_visible_set_revision UNIQUE (query, feed_id, visible_set, revision);

ALTER TABLE ONLY public.vendor_grants
    ADD CONSTRAINT uq_vendor_grants_rules UNIQUE NULLS NOT DISTINCT (vendor_id, district_id, school_id, students, classes, staff, guardians);

ALTER TABLE ONLY public.vendors
    ADD CONSTRAINT uq_vendors_email UNIQUE (email);

ALTER TABLE ONLY public.visibility_labels
    ADD CONSTRAINT uq_visibility_labels_feed_id_digest UNIQUE (feed_id, digest);

CREATE INDEX ix_api_keys_vendor_id ON public.api_keys USING btree (vendor_id);

CREATE INDEX ix_audit_at ON public.audit USING btree (at);

CREATE INDEX ix_audit_days_at ON public.audit_days USING btree (at);

CREATE INDEX ix_audit_days_vendor_id_at ON public.audit_days USING btree (vendor_id, at);

CREATE INDEX ix_audit_request_id ON public.audit USING btree (request_id);

CREATE INDEX ix_audit_vendor_id_at ON public.audit USING btree (vendor_id, at);

CREATE INDEX ix_changes_at ON public.changes USING btree (at);

CREATE INDEX ix_changes_form ON public.changes USING btree (form) WHERE (form IS NOT NULL);

CREATE INDEX ix_deletion_requests_vendor_id ON public.deletion_requests USING btree (vendor_id);

CREATE INDEX ix_deliveries_vendor_id ON public.deliveries USING btree (vendor_id);

CREATE INDEX ix_delivery_runs_delivery_id_id ON public.delivery_runs USING btree (delivery_id, id);

CREATE INDEX ix_departures_feed_id_departed_at ON public.departures USING btree (feed_id, departed_at);

CREATE INDEX ix_departures_person_id ON public.departures USING btree (person_id);

CREATE INDEX ix_group_members_group_id_since ON public.group_members USING btree (group_id, since);

CREATE INDEX ix_kept_people_key_user_id ON public.kept_people USING btree (key, user_id);

CREATE INDEX ix_oauth_clients_vendor_id ON public.oauth_clients USING btree (vendor_id);

CREATE INDEX ix_operator_sessions_operator_id ON public.operator_sessions USING btree (operator_id);

CREATE INDEX ix_sync_changes_run_id ON public.sync_changes USING btree (run_id);

CREATE INDEX ix_sync_changes_sourced_id ON public.sync_changes USING btree (sourced_id);

CREATE INDEX ix_sync_runs_feed_id ON public.sync_runs USING btree (feed_id);

CREATE INDEX ix_sync_runs_running ON public.sync_runs USING btree (feed_id) WHERE (outcome = 'running'::text);

CREATE INDEX ix_users_parts_changed ON public.users USING btree (parts_changed) WHERE (parts_changed IS NOT NULL);

CREATE INDEX ix_visible_feeds_key_visible_set ON public.visible_feeds USING btree (key, visible_set);

CREATE INDEX ix_visible_orgs_key_feed_id ON public.visible_orgs USING btree (key, feed_id);

CREATE INDEX ix_visible_orgs_key_org_id ON public.visible_orgs USING btree (key, org_id);

CREATE INDEX ix_visible_orgs_whole_district ON public.visible_orgs USING btree (key, org_id) WHERE whole_district;

ALTER TABLE ONLY public.agreements
    ADD CONSTRAINT fk_agreements_vendor_id_vendors FOREIGN KEY (vendor_id) REFERENCES public.vendors(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT fk_api_keys_vendor_id FOREIGN KEY (vendor_id) REFERENCES public.vendors(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.deletion_requests
    ADD CONSTRAINT fk_deletion_requests_vendor_id_vendors FOREIGN KEY (vendor_id) REFERENCES public.vendors(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.deliveries
    ADD CONSTRAINT fk_deliveries_vendor_id_vendors FOREIGN KEY (vendor_id) REFERENCES public.vendors(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.delivery_runs
    ADD CONSTRAINT fk_delivery_runs_delivery_id_deliveries FOREIGN KEY (delivery_id) REFERENCES public.deliveries(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.group_members
    ADD CONSTRAINT fk_group_members_group_id_vendor_grants FOREIGN KEY (group_id) REFERENCES public.vendor_grants(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.kept_people
    ADD CONSTRAINT fk_kept_people_vendor_id_vendors FOREIGN KEY (vendor_id) REFERENCES public.vendors(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.oauth_clients
    ADD CONSTRAINT fk_oauth_clients_vendor_id FOREIGN KEY (vendor_id) REFERENCES public.vendors(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.operator_sessions
    ADD CONSTRAINT fk_operator_sessions_operator_id_operators FOREIGN KEY (operator_id) REFERENCES public.operators(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.quality_counts
    ADD CONSTRAINT fk_quality_counts_feed_id_feeds FOREIGN KEY (feed_id) REFERENCES public.feeds(id);

ALTER TABLE ONLY public.sync_changes
    ADD CONSTRAINT fk_sync_changes_run_id FOREIGN KEY (run_id) REFERENCES public.sync_runs(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.sync_rejections
    ADD CONSTRAINT fk_sync_rejections_run_id FOREIGN KEY (run_id) REFERENCES public.sync_runs(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.sync_runs
    ADD CONSTRAINT fk_sync_runs_feed_id FOREIGN KEY (feed_id) REFERENCES public.feeds(id);

ALTER TABLE ONLY public.vendor_grants
    ADD CONSTRAINT fk_vendor_grants_vendor_id FOREIGN KEY (vendor_id) REFERENCES public.vendors(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.visible_feeds
    ADD CONSTRAINT fk_visible_feeds_vendor_id_vendors FOREIGN KEY (vendor_id) REFERENCES public.vendors(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.visible_groups
    ADD CONSTRAINT fk_visible_groups_vendor_id_vendors FOREIGN KEY (vendor_id) REFERENCES public.vendors(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.visible_labels
    ADD CONSTRAINT fk_visible_labels_vendor_id_vendors FOREIGN KEY (vendor_id) REFERENCES public.vendors(id) ON DELETE CASCADE;

ALTER TABLE public.academic_sessions ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.classes ENABLE ROW LEVEL SECURITY;

CREATE POLICY console ON public.academic_sessions TO console_role USING (true);

CREATE POLICY console ON public.classes TO console_role USING (true);

CREATE POLICY console ON public.courses TO console_role USING (true);

CREATE POLICY console ON public.demographics TO console_role USING (true);

CREATE POLICY console ON public.departures TO console_role USING (true);

CREATE POLICY console ON public.enrollments TO console_role USING (true);

CREATE POLICY console ON public.group_members TO console_role USING (true);

CREATE POLICY console ON public.kept_people TO console_role USING (true);

CREATE POLICY console ON public.ordering_chunks TO console_role USING (true);

CREATE POLICY console ON public.orderings TO console_role USING (true);

CREATE POLICY console ON public.orgs TO console_role USING (true);

CREATE POLICY console ON public.pulls TO console_role USING (true);

CREATE POLICY console ON public.user_agents TO console_role USING (true);

CREATE POLICY console ON public.user_profiles TO console_role USING (true);

CREATE POLICY console ON public.user_roles TO console_role USING (true);

CREATE POLICY console ON public.users TO console_role USING (true);

CREATE POLICY console ON public.visibility_labels TO console_role USING (true);

CREATE POLICY console ON public.visible_feeds TO console_role USING (true);

CREATE POLICY console ON public.visible_groups TO console_role USING (true);

CREATE POLICY console ON public.visible_labels TO console_role USING (true);

CREATE POLICY console ON public.visible_orgs TO console_role USING (true);

ALTER TABLE public.courses ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.demographics ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.departures ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.enrollments ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.group_members ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.kept_people ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.ordering_chunks ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.orderings ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.orgs ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.pulls ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.user_agents ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.user_profiles ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.user_roles ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.users ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.visibility_labels ENABLE ROW LEVEL SECURITY;

CREATE POLICY visible ON public.academic_sessions FOR SELECT USING ((
CASE
    WHEN (EXISTS ( SELECT
       FROM public.visible_orgs seen
      WHERE (seen.feed_id = academic_sessions.feed_id))) THEN 1
    ELSE 0
END <> 0));

CREATE POLICY visible ON public.classes FOR SELECT USING ((
CASE
    WHEN ((EXISTS ( SELECT
       FROM public.visible_orgs seen
      WHERE ((seen.org_id = classes.school_id) AND seen.granted))) OR (EXISTS ( SELECT
       FROM public.group_members m
      WHERE ((m.type = 'classes'::text) AND (m.sourced_id = classes.sourced_id))
     OFFSET 0))) THEN 1
    ELSE 0
END <> 0));

CREATE POLICY visible ON public.courses FOR SELECT USING ((
CASE
    WHEN ((EXISTS ( SELECT
       FROM public.visible_orgs seen
      WHERE ((seen.org_id = courses.org_id) AND (NOT seen.narrowed)))) OR (EXISTS ( SELECT
       FROM public.classes taught
      WHERE ((taught.course_id = courses.sourced_id) AND (taught.status = 'active'::text))))) THEN 1
    ELSE 0
END <> 0));

CREATE POLICY visible ON public.demographics FOR SELECT USING ((
CASE
    WHEN (EXISTS ( SELECT
       FROM public.user_roles held
      WHERE (held.user_id = demographics.sourced_id))) THEN 1
    ELSE 0
END <> 0));

CREATE POLICY visible ON public.departures FOR SELECT USING ((((EXISTS ( SELECT
   FROM public.visibility_labels former
  WHERE (former.id = departures.label_id))) OR ((EXISTS ( SELECT
   FROM public.visible_groups seen
  WHERE (seen.group_id = departures.group_id))) AND ((role <> ALL (ARRAY['guardian'::text, 'parent'::text, 'relative'::text])) OR ( SELECT (NULLIF(current_setting('roster.guardians'::text, true), ''::text))::boolean AS "nullif")))) AND (EXISTS ( SELECT
   FROM public.visible_feeds seen
  WHERE ((seen.feed_id = departures.feed_id) AND (seen.floor < departures.departed_at) AND ((departures.vendor_id = 0) OR (departures.vendor_id = seen.vendor_id))))) AND (NOT (( SELECT (EXISTS ( SELECT
           FROM public.kept_people)) AS "exists") AND (EXISTS ( SELECT
   FROM public.kept_people kept
  WHERE ((kept.user_id = departures.person_id) AND (departures.vendor_id = 0) AND (kept.since < departures.departed_at) AND ((kept.until IS NULL) OR (departures.departed_at <= kept.until)))
 OFFSET 0)))) AND (departed_at > COALESCE(( SELECT (NULLIF(current_setting('roster.floor'::text, true), ''::text))::timestamp with time zone AS "nullif"), '-infinity'::timestamp with time zone))));

CREATE POLICY visible ON public.enrollments FOR SELECT USING ((
CASE
    WHEN ((((EXISTS ( SELECT
       FROM public.visible_orgs seen
      WHERE ((seen.org_id = enrollments.school_id) AND seen.granted))) AND (school_opens OR ((EXISTS ( SELECT
       FROM (public.classes taught
         JOIN public.visible_orgs seen ON (((seen.org_id = taught.school_id) AND seen.granted)))
      WHERE (taught.sourced_id = enrollments.class_id))) AND (EXISTS ( SELECT
       FROM (public.user_roles held
         JOIN public.visible_orgs seen ON (((seen.org_id = held.org_id) AND seen.granted)))
      WHERE (held.user_id = enrollments.user_id)))))) OR (EXISTS ( SELECT
       FROM ((public.group_members own
         JOIN public.group_members taught ON ((taught.group_id = own.group_id)))
         JOIN public.group_members person ON ((person.group_id = own.group_id)))
      WHERE ((own.type = 'enrollments'::text) AND (own.sourced_id = enrollments.sourced_id) AND (taught.type = 'classes'::text) AND (taught.sourced_id = enrollments.class_id) AND (person.type = 'users'::text) AND (person.sourced_id = enrollments.user_id) AND (person.role <> ALL (ARRAY['guardian'::text, 'parent'::text, 'relative'::text])))
     OFFSET 0))) AND (NOT (( SELECT (EXISTS ( SELECT
               FROM public.kept_people)) AS "exists") AND (EXISTS ( SELECT
       FROM public.kept_people kept
      WHERE ((kept.user_id = enrollments.user_id) AND (kept.until IS NULL))
     OFFSET 0))))) THEN 1
    ELSE 0
END <> 0));

CREATE POLICY visible ON public.group_members FOR SELECT USING (((EXISTS ( SELECT
   FROM public.visible_groups seen
  WHERE (seen.group_id = group_members.group_id))) AND ((role <> ALL (ARRAY['guardian'::text, 'parent'::text, 'relative'::text])) OR ( SELECT (NULLIF(current_setting('roster.guardians'::text, true), ''::text))::boolean AS "nullif"))));

CREATE POLICY visible ON public.kept_people FOR SELECT USING ((key = ( SELECT (NULLIF(current_setting('roster.visibility_key'::text, true), ''::text))::uuid AS "nullif")));

CREATE POLICY visible ON public.ordering_chunks USING ((EXISTS ( SELECT
   FROM public.orderings own
  WHERE (own.id = ordering_chunks.ordering_id))));

CREATE POLICY visible ON public.orderings USING ((visible_set IN ( SELECT ((seen.visible_set ||
        CASE
            WHEN (current_setting('roster.guardians'::text, true) = 'true'::text) THEN ' with guardians'::text
            ELSE ''::text
        END) || part.since)
   FROM ((public.visible_feeds seen
     CROSS JOIN LATERAL ( SELECT GREATEST(seen.floor, (NULLIF(current_setting('roster.floor'::text, true), ''::text))::timestamp with time zone) AS floor) own)
     CROSS JOIN LATERAL ( VALUES ((' since '::text || EXTRACT(epoch FROM own.floor))), (
                CASE
                    WHEN (own.floor >= seen.first_departure) THEN NULL::text
                    ELSE ''::text
                END)) part(since))
  WHERE (part.since IS NOT NULL))));

CREATE POLICY visible ON public.orgs FOR SELECT USING ((
CASE
    WHEN (EXISTS ( SELECT
       FROM public.visible_orgs seen
      WHERE (seen.org_id = orgs.sourced_id))) THEN 1
    ELSE 0
END <> 0));

CREATE POLICY visible ON public.pulls USING ((EXISTS ( SELECT
   FROM public.visible_orgs)));

CREATE POLICY visible ON public.user_agents FOR SELECT USING ((
CASE
    WHEN ((EXISTS ( SELECT
       FROM public.user_roles held
      WHERE (held.user_id = user_agents.user_id))) AND (EXISTS ( SELECT
       FROM public.user_roles held
      WHERE (held.user_id = user_agents.agent_id)))) THEN 1
    ELSE 0
END <> 0));

CREATE POLICY visible ON public.user_profiles FOR SELECT USING ((
CASE
    WHEN (EXISTS ( SELECT
       FROM public.user_roles held
      WHERE (held.user_id = user_profiles.user_id))) THEN 1
    ELSE 0
END <> 0));

CREATE POLICY visible ON public.user_roles FOR SELECT USING ((
CASE
    WHEN (((EXISTS ( SELECT
       FROM public.visible_orgs seen
      WHERE ((seen.org_id = user_roles.org_id) AND seen.granted))) OR (EXISTS ( SELECT
       FROM public.group_members m
      WHERE ((m.type = 'users'::text) AND (m.sourced_id = user_roles.user_id) AND (m.org_id = user_roles.org_id) AND (m.role = user_roles.role))
     OFFSET 0))) AND ((role <> ALL (ARRAY['guardian'::text, 'parent'::text, 'relative'::text])) OR ( SELECT (NULLIF(current_setting('roster.guardians'::text, true), ''::text))::boolean AS "nullif")) AND (NOT (( SELECT (EXISTS ( SELECT
               FROM public.kept_people)) AS "exists") AND (EXISTS ( SELECT
       FROM public.kept_people kept
      WHERE ((kept.user_id = user_roles.user_id) AND (kept.until IS NULL))
     OFFSET 0))))) THEN 1
    ELSE 0
END <> 0));

CREATE POLICY visible ON public.users FOR SELECT USING ((
CASE
    WHEN (EXISTS ( SELECT
       FROM public.user_roles held
      WHERE (held.user_id = users.sourced_id))) THEN 1
    ELSE 0
END <> 0));

CREATE POLICY visible ON public.visibility_labels FOR SELECT USING (((NOT (EXISTS ( SELECT
   FROM unnest(visibility_labels.all_orgs) needed(org_id)
  WHERE (NOT (EXISTS ( SELECT
           FROM public.visible_orgs seen
          WHERE ((seen.org_id = needed.org_id) AND seen.granted))))))) AND (EXISTS ( SELECT
   FROM public.visible_orgs seen
  WHERE ((seen.granted AND (seen.org_id = ANY (visibility_labels.any_orgs))) OR (seen.granted AND (seen.org_id = ANY (visibility_labels.guardian_orgs)) AND ( SELECT (NULLIF(current_setting('roster.guardians'::text, true), ''::text))::boolean AS "nullif")) OR ((NOT seen.narrowed) AND (seen.org_id = ANY (visibility_labels.listed_orgs))))))));

CREATE POLICY visible ON public.visible_feeds FOR SELECT USING ((key = ( SELECT (NULLIF(current_setting('roster.visibility_key'::text, true), ''::text))::uuid AS "nullif")));

CREATE POLICY visible ON public.visible_groups FOR SELECT USING ((key = ( SELECT (NULLIF(current_setting('roster.visibility_key'::text, true), ''::text))::uuid AS "nullif")));

CREATE POLICY visible ON public.visible_labels FOR SELECT USING ((key = ( SELECT (NULLIF(current_setting('roster.visibility_key'::text, true), ''::text))::uuid AS "nullif")));

CREATE POLICY visible ON public.visible_orgs FOR SELECT USING ((key = ( SELECT (NULLIF(current_setting('roster.visibility_key'::text, true), ''::text))::uuid AS "nullif")));

ALTER TABLE public.visible_feeds ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.visible_groups ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.visible_labels ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.visible_orgs ENABLE ROW LEVEL SECURITY;

GRANT USAGE ON SCHEMA public TO serving_role;
GRANT USAGE ON SCHEMA public TO accounts_role;
GRANT USAGE ON SCHEMA public TO counters_role;
GRANT USAGE ON SCHEMA public TO console_role;

REVOKE ALL ON FUNCTION public.admit_client(client text, vendor numeric, client_version numeric, grant_version numeric, visibility_key uuid, signed_by text, guardians boolean, slots integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.admit_client(client text, vendor numeric, client_version numeric, grant_version numeric, visibility_key uuid, signed_by text, guardians boolean, slots integer) TO serving_role;

REVOKE ALL ON FUNCTION public.admit_key_holder(hash bytea, guardians boolean, version integer, OUT vendor integer, OUT key_prefix text, OUT enabled boolean, OUT grant_version integer, OUT districts text[], OUT schools text[], OUT flags text[], OUT listed text[], OUT requests_per_second integer, OUT burst integer, OUT requests_per_day integer, OUT live_keys text[], OUT agreed_fields text[], OUT agreed_scopes text[], OUT agreed_flags text[], OUT agreed_metadata_keys text[], OUT not_agreed text, OUT revision bigint, OUT as_of timestamp with time zone, OUT deletions_since timestamp with time zone, OUT has_rules boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION public.admit_key_holder(hash bytea, guardians boolean, version integer, OUT vendor integer, OUT key_prefix text, OUT enabled boolean, OUT grant_version integer, OUT districts text[], OUT schools text[], OUT flags text[], OUT listed text[], OUT requests_per_second integer, OUT burst integer, OUT requests_per_day integer, OUT live_keys text[], OUT agreed_fields text[], OUT agreed_scopes text[], OUT agreed_flags text[], OUT agreed_metadata_keys text[], OUT not_agreed text, OUT revision bigint, OUT as_of timestamp with time zone, OUT deletions_since timestamp with time zone, OUT has_rules boolean) TO serving_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.vendor_grants TO console_role;

REVOKE ALL ON FUNCTION public.agreed_grants(vendor integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.agreed_grants(vendor integer) TO accounts_role;
GRANT ALL ON FUNCTION public.agreed_grants(vendor integer) TO console_role;

REVOKE ALL ON FUNCTION public.evict_orderings(most_bytes bigint, most_orderings bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION public.evict_orderings(most_bytes bigint, most_orderings bigint) TO serving_role;

REVOKE ALL ON FUNCTION public.find_agreement_refusal(vendor integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.find_agreement_refusal(vendor integer) TO accounts_role;
GRANT ALL ON FUNCTION public.find_agreement_refusal(vendor integer) TO console_role;

REVOKE ALL ON FUNCTION public.find_runs_under_way() FROM PUBLIC;
GRANT ALL ON FUNCTION public.find_runs_under_way() TO counters_role;
GRANT ALL ON FUNCTION public.find_runs_under_way() TO console_role;

REVOKE ALL ON FUNCTION public.limit_grants(vendor integer, given public.vendor_grants[]) FROM PUBLIC;
GRANT ALL ON FUNCTION public.limit_grants(vendor integer, given public.vendor_grants[]) TO console_role;

REVOKE ALL ON FUNCTION public.next_stamp() FROM PUBLIC;
GRANT ALL ON FUNCTION public.next_stamp() TO console_role;

REVOKE ALL ON FUNCTION public.note_ended_agreements() FROM PUBLIC;
GRANT ALL ON FUNCTION public.note_ended_agreements() TO counters_role;
GRANT ALL ON FUNCTION public.note_ended_agreements() TO console_role;

REVOKE ALL ON FUNCTION public.refresh_visible_orgs(vendor integer, new_orgs text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION public.refresh_visible_orgs(vendor integer, new_orgs text[]) TO console_role;

REVOKE ALL ON FUNCTION public.use_secret_link(link bytea, secret bytea, address text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.use_secret_link(link bytea, secret bytea, address text) TO counters_role;

GRANT SELECT ON TABLE public.academic_sessions TO serving_role;
GRANT SELECT ON TABLE public.academic_sessions TO console_role;

GRANT SELECT ON TABLE public.agreements TO accounts_role;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.agreements TO console_role;

GRANT SELECT ON TABLE public.alembic_version TO accounts_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.api_keys TO console_role;

GRANT SELECT(vendor_id) ON TABLE public.api_keys TO counters_role;

GRANT SELECT(prefix) ON TABLE public.api_keys TO counters_role;

GRANT INSERT ON TABLE public.audit TO counters_role;
GRANT SELECT,INSERT ON TABLE public.audit TO console_role;

GRANT SELECT ON TABLE public.audit_days TO console_role;

GRANT SELECT ON TABLE public.audit_people TO console_role;

GRANT SELECT,INSERT ON TABLE public.changes TO console_role;

GRANT UPDATE(before) ON TABLE public.changes TO console_role;

GRANT UPDATE(after) ON TABLE public.changes TO console_role;

GRANT UPDATE(reason) ON TABLE public.changes TO console_role;

GRANT SELECT ON TABLE public.classes TO serving_role;
GRANT SELECT ON TABLE public.classes TO console_role;

GRANT SELECT ON TABLE public.courses TO serving_role;
GRANT SELECT ON TABLE public.courses TO console_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.deletion_requests TO console_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.deliveries TO console_role;

GRANT SELECT ON TABLE public.delivery_runs TO console_role;

GRANT SELECT ON TABLE public.demographics TO serving_role;
GRANT SELECT,DELETE ON TABLE public.demographics TO console_role;

GRANT SELECT ON TABLE public.departures TO serving_role;
GRANT SELECT,INSERT,DELETE ON TABLE public.departures TO console_role;

GRANT UPDATE(departed_at) ON TABLE public.departures TO console_role;

GRANT SELECT ON TABLE public.disclosures TO console_role;

GRANT SELECT ON TABLE public.enrollments TO serving_role;
GRANT SELECT,DELETE ON TABLE public.enrollments TO console_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.exclusions TO console_role;

GRANT SELECT,INSERT,UPDATE ON TABLE public.feeds TO console_role;

GRANT SELECT(id) ON TABLE public.feeds TO counters_role;

GRANT SELECT(name) ON TABLE public.feeds TO counters_role;

GRANT SELECT(enabled) ON TABLE public.feeds TO counters_role;

GRANT SELECT(pause_from) ON TABLE public.feeds TO counters_role;

GRANT SELECT(pause_until) ON TABLE public.feeds TO counters_role;

GRANT SELECT(state) ON TABLE public.feeds TO counters_role;

GRANT SELECT ON TABLE public.group_members TO serving_role;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.group_members TO console_role;

GRANT SELECT ON TABLE public.kept_people TO serving_role;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.kept_people TO console_role;

GRANT SELECT,INSERT,UPDATE ON TABLE public.last_uses TO counters_role;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.last_uses TO console_role;

GRANT INSERT,DELETE ON TABLE public.oauth1_nonces TO counters_role;

GRANT SELECT(stamp) ON TABLE public.oauth1_nonces TO counters_role;

GRANT SELECT ON TABLE public.oauth_clients TO accounts_role;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.oauth_clients TO console_role;

GRANT SELECT(client_id) ON TABLE public.oauth_clients TO counters_role;

GRANT SELECT(vendor_id) ON TABLE public.oauth_clients TO counters_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.operator_sessions TO console_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.operators TO console_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.ordering_chunks TO serving_role;
GRANT SELECT,DELETE ON TABLE public.ordering_chunks TO console_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.orderings TO serving_role;
GRANT SELECT,DELETE ON TABLE public.orderings TO console_role;

GRANT SELECT ON TABLE public.orgs TO serving_role;
GRANT SELECT ON TABLE public.orgs TO console_role;

GRANT SELECT ON TABLE public.published_vendors TO accounts_role;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.published_vendors TO console_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.pulls TO serving_role;
GRANT SELECT ON TABLE public.pulls TO console_role;

GRANT SELECT ON TABLE public.quality_counts TO console_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.rate_hits TO counters_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.rate_windows TO counters_role;

GRANT SELECT,INSERT,UPDATE ON TABLE public.refused_requests TO counters_role;
GRANT SELECT,INSERT,UPDATE ON TABLE public.refused_requests TO console_role;

GRANT SELECT,UPDATE ON TABLE public.roster_state TO console_role;

GRANT SELECT(generation) ON TABLE public.roster_state TO accounts_role;

GRANT SELECT ON TABLE public.signing_keys TO accounts_role;

GRANT SELECT(key_id) ON TABLE public.signing_keys TO console_role;

GRANT SELECT(public_jwk) ON TABLE public.signing_keys TO console_role;

GRANT SELECT(created_at) ON TABLE public.signing_keys TO console_role;

GRANT SELECT(retired_at) ON TABLE public.signing_keys TO console_role;

GRANT SELECT,DELETE ON TABLE public.sync_changes TO console_role;

GRANT SELECT,DELETE ON TABLE public.sync_rejections TO console_role;

GRANT SELECT,UPDATE ON TABLE public.sync_runs TO console_role;

GRANT SELECT(id) ON TABLE public.sync_runs TO counters_role;

GRANT SELECT(feed_id) ON TABLE public.sync_runs TO counters_role;

GRANT SELECT(started_at) ON TABLE public.sync_runs TO counters_role;

GRANT SELECT(finished_at) ON TABLE public.sync_runs TO counters_role;

GRANT SELECT(stamp) ON TABLE public.sync_runs TO counters_role;

GRANT SELECT(outcome) ON TABLE public.sync_runs TO counters_role;

GRANT SELECT(rejected) ON TABLE public.sync_runs TO counters_role;

GRANT SELECT,INSERT,UPDATE ON TABLE public.usage TO counters_role;
GRANT SELECT,INSERT,UPDATE ON TABLE public.usage TO console_role;

GRANT SELECT ON TABLE public.user_agents TO serving_role;
GRANT SELECT,DELETE ON TABLE public.user_agents TO console_role;

GRANT SELECT ON TABLE public.user_profiles TO serving_role;
GRANT SELECT,DELETE ON TABLE public.user_profiles TO console_role;

GRANT SELECT ON TABLE public.user_roles TO serving_role;
GRANT SELECT,DELETE ON TABLE public.user_roles TO console_role;

GRANT SELECT ON TABLE public.users TO serving_role;
GRANT SELECT,DELETE ON TABLE public.users TO console_role;

GRANT UPDATE(date_last_modified) ON TABLE public.users TO console_role;

GRANT SELECT ON TABLE public.vendor_defaults TO accounts_role;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.vendor_defaults TO console_role;

GRANT SELECT ON TABLE public.vendors TO accounts_role;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.vendors TO console_role;

GRANT SELECT ON TABLE public.visibility_labels TO serving_role;
GRANT SELECT ON TABLE public.visibility_labels TO console_role;

GRANT SELECT ON TABLE public.visible_feeds TO serving_role;
GRANT SELECT ON TABLE public.visible_feeds TO console_role;

GRANT UPDATE(revision) ON TABLE public.visible_feeds TO console_role;

GRANT SELECT ON TABLE public.visible_groups TO serving_role;
GRANT SELECT ON TABLE public.visible_groups TO console_role;

GRANT SELECT ON TABLE public.visible_labels TO serving_role;
GRANT SELECT ON TABLE public.visible_labels TO console_role;

GRANT SELECT ON TABLE public.visible_orgs TO serving_role;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.visible_orgs TO console_role;
