CREATE COLLATION public.roster_nocase (provider = builtin, locale = 'C.UTF-8');

CREATE FUNCTION public.admit_client(client text, secret_version numeric, rights_version numeric, signed_by text, guardians boolean, OUT vendor integer, OUT districts text[], OUT schools text[], OUT revision bigint, OUT as_of timestamp with time zone, OUT deletions_since timestamp with time zone, OUT opening text, OUT everyone boolean) RETURNS SETOF record
    LANGUAGE plpgsql SECURITY DEFINER ROWS 1
    SET search_path TO 'public', 'pg_temp'
    AS $$
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

CREATE FUNCTION public.client_stands(client text, secret_version numeric, rights_version numeric, signed_by text, known_vendor integer, known_revision bigint, known_as_of timestamp with time zone, known_deletions_since timestamp with time zone) RETURNS boolean
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM standing_client(client, secret_version, rights_version, signed_by) found
        WHERE (found.vendor, found.revision, found.as_of, found.deletions_since)
            = (known_vendor, known_revision, known_as_of, known_deletions_since)
    );
END
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

CREATE FUNCTION public.find_key_holder(hash bytea, OUT vendor integer, OUT key_prefix text, OUT enabled boolean, OUT grant_version integer, OUT districts text[], OUT schools text[], OUT flags text[], OUT requests_per_second integer, OUT burst integer, OUT requests_per_day integer, OUT live_keys text[], OUT revision bigint, OUT as_of timestamp with time zone, OUT deletions_since timestamp with time zone) RETURNS SETOF record
    LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 1
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
    RETURN QUERY SELECT found.id, asking.prefix, found.enabled, found.grant_version,
        ARRAY(SELECT district_id FROM vendor_grants WHERE vendor_id = found.id AND school_id IS NULL),
        ARRAY(SELECT school_id FROM vendor_grants WHERE vendor_id = found.id AND school_id IS NOT NULL),
        found.flags, found.requests_per_second, found.burst, found.requests_per_day,
        ARRAY(SELECT key_id FROM signing_keys WHERE retired_at IS NULL OR retired_at > now()),
        state.revision, state.as_of, state.deletions_since
    FROM api_keys asking JOIN vendors found ON found.id = asking.vendor_id CROSS JOIN roster_state state
    WHERE asking.key_hash = hash AND (asking.expires_at IS NULL OR asking.expires_at > now());
END
$$;

CREATE FUNCTION public.grants_every_org(districts text[], schools text[]) RETURNS boolean
    LANGUAGE sql STABLE SECURITY DEFINER PARALLEL SAFE
    SET search_path TO 'public', 'pg_temp'
    AS $$
    SELECT NOT EXISTS (
        SELECT FROM orgs WHERE (district_id = ANY (districts) OR sourced_id = ANY (schools)) IS NOT TRUE
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

CREATE FUNCTION public.keep_sight(districts text[], schools text[]) RETURNS void
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    AS $$
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

CREATE FUNCTION public.read_window(name text, most integer, seconds double precision, OUT oldest timestamp with time zone, OUT hits integer) RETURNS record
    LANGUAGE plpgsql STABLE
    AS $$
DECLARE
    edge timestamptz := clock_timestamp() - make_interval(secs => seconds);
BEGIN
    SELECT hit_at, most INTO oldest, hits FROM rate_hits
    WHERE key = name AND hit_at > edge
    AND slot = (SELECT window_of.hits % most FROM rate_windows AS window_of WHERE window_of.key = name);
    IF NOT FOUND THEN
        SELECT min(hit_at), count(*) INTO oldest, hits FROM rate_hits WHERE key = name AND hit_at > edge;
    END IF;
    oldest := coalesce(oldest, clock_timestamp());
END
$$;

CREATE FUNCTION public.readmit_client(client text, secret_version numeric, rights_version numeric, signed_by text, guardians boolean, known_vendor integer, known_revision bigint, known_as_of timestamp with time zone, known_deletions_since timestamp with time zone, known_opening text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    AS $$
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

CREATE FUNCTION public.recall_document(client text, secret_version numeric, rights_version numeric, signed_by text, guardians boolean, known_vendor integer, known_revision bigint, known_as_of timestamp with time zone, known_deletions_since timestamp with time zone, shelf_key text, record text) RETURNS TABLE(body text, district_id text, needs_guardians boolean)
    LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 1
    SET search_path TO 'public', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    granted text[];
BEGIN
    SELECT ARRAY(SELECT district_id FROM vendor_grants WHERE vendor_id = found.vendor AND school_id IS NULL)
    INTO granted FROM standing_client(client, secret_version, rights_version, signed_by) found
    WHERE (found.vendor, found.revision, found.as_of, found.deletions_since)
        = (known_vendor, known_revision, known_as_of, known_deletions_since);
    RETURN QUERY SELECT kept.body, kept.district_id, kept.needs_guardians
    FROM shelves held JOIN documents kept ON kept.shelf = held.id
    WHERE held.key = shelf_key AND held.revision = known_revision AND kept.sourced_id = record
    AND kept.district_id = ANY (granted) AND (guardians OR NOT kept.needs_guardians);
END
$$;

CREATE FUNCTION public.set_sight(districts text[], schools text[], guardians boolean) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    AS $$
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
    previous_secret_ends_at timestamp(3) with time zone
);

CREATE TABLE public.roster_state (
    singleton boolean DEFAULT true NOT NULL,
    revision bigint NOT NULL,
    as_of timestamp(3) with time zone NOT NULL,
    deletions_since timestamp(3) with time zone NOT NULL,
    serving_role text COLLATE pg_catalog."C",
    generation integer DEFAULT 1 NOT NULL,
    CONSTRAINT ck_roster_state_singleton CHECK (singleton)
);

CREATE TABLE public.signing_keys (
    key_id text NOT NULL COLLATE pg_catalog."C",
    public_jwk jsonb NOT NULL,
    private_sealed bytea NOT NULL,
    created_at timestamp(3) with time zone DEFAULT now() NOT NULL,
    retired_at timestamp(3) with time zone
);

CREATE TABLE public.vendors (
    id integer NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    email text NOT NULL COLLATE pg_catalog."C",
    enabled boolean DEFAULT true NOT NULL,
    grant_version integer DEFAULT 1 NOT NULL,
    created_at timestamp(3) with time zone DEFAULT now() NOT NULL,
    password_hash text COLLATE pg_catalog."C",
    flags text[] DEFAULT '{}'::text[] NOT NULL COLLATE pg_catalog."C",
    requests_per_second integer,
    burst integer,
    requests_per_day integer
);

CREATE FUNCTION public.standing_client(client text, secret_version numeric, rights_version numeric, signed_by text) RETURNS TABLE(vendor integer, revision bigint, as_of timestamp with time zone, deletions_since timestamp with time zone)
    LANGUAGE sql STABLE ROWS 1
    BEGIN ATOMIC
 SELECT found.id,
     state.revision,
     state.as_of,
     state.deletions_since
    FROM ((public.oauth_clients asking
      JOIN public.vendors found ON ((found.id = asking.vendor_id)))
      CROSS JOIN public.roster_state state)
   WHERE ((asking.client_id = standing_client.client) AND asking.enabled AND ((asking.version)::numeric = standing_client.secret_version) AND found.enabled AND ((found.grant_version)::numeric = standing_client.rights_version) AND (EXISTS ( SELECT
            FROM public.signing_keys
           WHERE ((signing_keys.key_id = standing_client.signed_by) AND ((signing_keys.retired_at IS NULL) OR (signing_keys.retired_at > now()))))));
END;

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
        WHERE key = name AND slot = (taken + amount - 1) % most AND hit_at > instant - make_interval(secs => seconds)
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

CREATE TABLE public.academic_sessions (
    sourced_id text NOT NULL COLLATE pg_catalog."C",
    feed_id integer NOT NULL,
    status text NOT NULL COLLATE pg_catalog."C",
    date_last_modified timestamp(3) with time zone NOT NULL,
    metadata jsonb,
    title text NOT NULL COLLATE pg_catalog."C",
    start_date date NOT NULL,
    end_date date NOT NULL,
    type text NOT NULL COLLATE pg_catalog."C",
    parent_id text COLLATE pg_catalog."C",
    school_year text NOT NULL COLLATE pg_catalog."C",
    fingerprint bigint,
    CONSTRAINT ck_academic_sessions_status CHECK ((status = ANY (ARRAY['active'::text, 'tobedeleted'::text])))
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
    request_id text NOT NULL COLLATE pg_catalog."C"
);

ALTER TABLE public.audit ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.audit_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.class_terms (
    class_id text NOT NULL COLLATE pg_catalog."C",
    ordinal smallint NOT NULL,
    session_id text NOT NULL COLLATE pg_catalog."C"
);

CREATE TABLE public.classes (
    sourced_id text NOT NULL COLLATE pg_catalog."C",
    feed_id integer NOT NULL,
    status text NOT NULL COLLATE pg_catalog."C",
    date_last_modified timestamp(3) with time zone NOT NULL,
    metadata jsonb,
    title text NOT NULL COLLATE pg_catalog."C",
    class_code text COLLATE pg_catalog."C",
    class_type text COLLATE pg_catalog."C",
    location text COLLATE pg_catalog."C",
    grades text[] COLLATE pg_catalog."C",
    course_id text NOT NULL COLLATE pg_catalog."C",
    school_id text NOT NULL COLLATE pg_catalog."C",
    subjects text[] COLLATE pg_catalog."C",
    subject_codes text[] COLLATE pg_catalog."C",
    periods text[] COLLATE pg_catalog."C",
    fingerprint bigint,
    CONSTRAINT ck_classes_status CHECK ((status = ANY (ARRAY['active'::text, 'tobedeleted'::text])))
);

CREATE TABLE public.courses (
    sourced_id text NOT NULL COLLATE pg_catalog."C",
    feed_id integer NOT NULL,
    status text NOT NULL COLLATE pg_catalog."C",
    date_last_modified timestamp(3) with time zone NOT NULL,
    metadata jsonb,
    title text NOT NULL COLLATE pg_catalog."C",
    school_year_id text COLLATE pg_catalog."C",
    course_code text COLLATE pg_catalog."C",
    grades text[] COLLATE pg_catalog."C",
    org_id text NOT NULL COLLATE pg_catalog."C",
    subjects text[] COLLATE pg_catalog."C",
    subject_codes text[] COLLATE pg_catalog."C",
    fingerprint bigint,
    CONSTRAINT ck_courses_status CHECK ((status = ANY (ARRAY['active'::text, 'tobedeleted'::text])))
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
    CONSTRAINT ck_demographics_status CHECK ((status = ANY (ARRAY['active'::text, 'tobedeleted'::text])))
);

CREATE UNLOGGED TABLE public.documents (
    shelf integer NOT NULL,
    sourced_id text NOT NULL COLLATE pg_catalog."C",
    needs text[] NOT NULL COLLATE pg_catalog."C",
    district_id text COLLATE pg_catalog."C",
    needs_guardians boolean NOT NULL,
    body text NOT NULL COLLATE pg_catalog."C"
);

CREATE TABLE public.enrollments (
    sourced_id text NOT NULL COLLATE pg_catalog."C",
    feed_id integer NOT NULL,
    status text NOT NULL COLLATE pg_catalog."C",
    date_last_modified timestamp(3) with time zone NOT NULL,
    metadata jsonb,
    user_id text NOT NULL COLLATE pg_catalog."C",
    class_id text NOT NULL COLLATE pg_catalog."C",
    school_id text NOT NULL COLLATE pg_catalog."C",
    role text NOT NULL COLLATE pg_catalog."C",
    "primary" boolean,
    begin_date date,
    end_date date,
    fingerprint bigint,
    CONSTRAINT ck_enrollments_status CHECK ((status = ANY (ARRAY['active'::text, 'tobedeleted'::text])))
);
ALTER TABLE ONLY public.enrollments ALTER COLUMN user_id SET (n_distinct=-0.1);

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
    fingerprinted boolean DEFAULT false NOT NULL
);

ALTER TABLE public.feeds ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.feeds_id_seq
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

CREATE UNLOGGED TABLE public.shelves (
    id integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    revision bigint NOT NULL,
    as_of timestamp(3) with time zone NOT NULL,
    ground text NOT NULL COLLATE pg_catalog."C",
    reached text COLLATE pg_catalog."C",
    bytes bigint NOT NULL,
    used_at timestamp with time zone NOT NULL
);

ALTER TABLE public.shelves ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.shelves_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE UNLOGGED TABLE public.sights (
    key text NOT NULL COLLATE pg_catalog."C",
    revision bigint NOT NULL,
    granted_orgs text NOT NULL COLLATE pg_catalog."C",
    shown_orgs text NOT NULL COLLATE pg_catalog."C",
    hash text NOT NULL COLLATE pg_catalog."C",
    everyone boolean NOT NULL,
    everyone_but_guardians boolean NOT NULL
);

CREATE TABLE public.sync_refusals (
    run_id bigint NOT NULL,
    number integer NOT NULL,
    file text NOT NULL COLLATE pg_catalog."C",
    line integer,
    header text COLLATE pg_catalog."C",
    value text COLLATE pg_catalog."C",
    reason text NOT NULL COLLATE pg_catalog."C"
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
    refused integer DEFAULT 0 NOT NULL,
    kept_export text COLLATE pg_catalog."C",
    notices text[] DEFAULT '{}'::text[] NOT NULL COLLATE pg_catalog."C",
    kept_digest bytea,
    CONSTRAINT ck_sync_runs_outcome CHECK ((outcome = ANY (ARRAY['running'::text, 'done'::text, 'unchanged'::text, 'held'::text, 'approved'::text, 'discarded'::text, 'refused'::text, 'failed'::text, 'interrupted'::text])))
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
    CONSTRAINT ck_users_status CHECK ((status = ANY (ARRAY['active'::text, 'tobedeleted'::text])))
);

CREATE TABLE public.vendor_grants (
    id integer NOT NULL,
    vendor_id integer NOT NULL,
    district_id text NOT NULL COLLATE pg_catalog."C",
    school_id text COLLATE pg_catalog."C"
);

ALTER TABLE public.vendor_grants ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.vendor_grants_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE public.vendors ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.vendors_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE UNLOGGED TABLE public.walk_chunks (
    walk bytea NOT NULL,
    number integer NOT NULL,
    ids text[] NOT NULL COLLATE pg_catalog."C"
);
ALTER TABLE ONLY public.walk_chunks ALTER COLUMN ids SET STORAGE EXTERNAL;

CREATE UNLOGGED TABLE public.walks (
    key bytea NOT NULL,
    revision bigint NOT NULL,
    total bigint NOT NULL,
    bytes bigint NOT NULL,
    used_at timestamp with time zone NOT NULL
);

ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT pk_api_keys PRIMARY KEY (key_hash);

ALTER TABLE ONLY public.audit
    ADD CONSTRAINT pk_audit PRIMARY KEY (id);

ALTER TABLE ONLY public.documents
    ADD CONSTRAINT pk_documents PRIMARY KEY (shelf, sourced_id);

ALTER TABLE ONLY public.feeds
    ADD CONSTRAINT pk_feeds PRIMARY KEY (id);

ALTER TABLE ONLY public.oauth_clients
    ADD CONSTRAINT pk_oauth_clients PRIMARY KEY (client_id);

ALTER TABLE ONLY public.rate_hits
    ADD CONSTRAINT pk_rate_hits PRIMARY KEY (key, slot);

ALTER TABLE ONLY public.rate_windows
    ADD CONSTRAINT pk_rate_windows PRIMARY KEY (key);

ALTER TABLE ONLY public.roster_state
    ADD CONSTRAINT pk_roster_state PRIMARY KEY (singleton);

ALTER TABLE ONLY public.shelves
    ADD CONSTRAINT pk_shelves PRIMARY KEY (id);

ALTER TABLE ONLY public.sights
    ADD CONSTRAINT pk_sights PRIMARY KEY (key);

ALTER TABLE ONLY public.signing_keys
    ADD CONSTRAINT pk_signing_keys PRIMARY KEY (key_id);

ALTER TABLE ONLY public.sync_refusals
    ADD CONSTRAINT pk_sync_refusals PRIMARY KEY (run_id, number);

ALTER TABLE ONLY public.sync_runs
    ADD CONSTRAINT pk_sync_runs PRIMARY KEY (id);

ALTER TABLE ONLY public.usage
    ADD CONSTRAINT pk_usage PRIMARY KEY (vendor_id, day, endpoint, status_class);

ALTER TABLE ONLY public.vendor_grants
    ADD CONSTRAINT pk_vendor_grants PRIMARY KEY (id);

ALTER TABLE ONLY public.vendors
    ADD CONSTRAINT pk_vendors PRIMARY KEY (id);

ALTER TABLE ONLY public.walk_chunks
    ADD CONSTRAINT pk_walk_chunks PRIMARY KEY (walk, number);

ALTER TABLE ONLY public.walks
    ADD CONSTRAINT pk_walks PRIMARY KEY (key);

ALTER TABLE ONLY public.feeds
    ADD CONSTRAINT uq_feeds_name UNIQUE (name);

ALTER TABLE ONLY public.shelves
    ADD CONSTRAINT uq_shelves_key UNIQUE (key);

ALTER TABLE ONLY public.vendor_grants
    ADD CONSTRAINT uq_vendor_grants_vendor_id_district_id_school_id UNIQUE NULLS NOT DISTINCT (vendor_id, district_id, school_id);

ALTER TABLE ONLY public.vendors
    ADD CONSTRAINT uq_vendors_email UNIQUE (email);

CREATE INDEX ix_api_keys_vendor_id ON public.api_keys USING btree (vendor_id);

CREATE INDEX ix_audit_at ON public.audit USING btree (at);

CREATE INDEX ix_audit_vendor_id_at ON public.audit USING btree (vendor_id, at);

CREATE INDEX ix_oauth_clients_vendor_id ON public.oauth_clients USING btree (vendor_id);

CREATE INDEX ix_sync_runs_feed_id ON public.sync_runs USING btree (feed_id);

CREATE INDEX ix_walks_used_at ON public.walks USING btree (used_at);

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT fk_api_keys_vendor_id FOREIGN KEY (vendor_id) REFERENCES public.vendors(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.oauth_clients
    ADD CONSTRAINT fk_oauth_clients_vendor_id FOREIGN KEY (vendor_id) REFERENCES public.vendors(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.sync_refusals
    ADD CONSTRAINT fk_sync_refusals_run_id FOREIGN KEY (run_id) REFERENCES public.sync_runs(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.sync_runs
    ADD CONSTRAINT fk_sync_runs_feed_id FOREIGN KEY (feed_id) REFERENCES public.feeds(id);

ALTER TABLE ONLY public.vendor_grants
    ADD CONSTRAINT fk_vendor_grants_vendor_id FOREIGN KEY (vendor_id) REFERENCES public.vendors(id) ON DELETE CASCADE;

ALTER TABLE public.academic_sessions ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.class_terms ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.classes ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.courses ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.demographics ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.documents ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.enrollments ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.orgs ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.user_agents ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.user_profiles ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.user_roles ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.users ENABLE ROW LEVEL SECURITY;

CREATE POLICY visible ON public.academic_sessions FOR SELECT USING ((
CASE
    WHEN (feed_id IN ( SELECT org.feed_id
       FROM public.orgs org)) THEN 1
    ELSE 0
END <> 0));

CREATE POLICY visible ON public.class_terms FOR SELECT USING ((
CASE
    WHEN (EXISTS ( SELECT
       FROM public.classes taught
      WHERE (taught.sourced_id = class_terms.class_id))) THEN 1
    ELSE 0
END <> 0));

CREATE POLICY visible ON public.classes FOR SELECT USING ((
CASE
    WHEN (EXISTS ( SELECT
       FROM public.orgs granted
      WHERE ((granted.sourced_id = classes.school_id) AND ((granted.district_id = ANY (( SELECT (NULLIF(current_setting('roster.granted_districts'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (granted.sourced_id = ANY (( SELECT (NULLIF(current_setting('roster.granted_schools'::text, true), ''::text))::text[] AS "nullif")::text[])))))) THEN 1
    ELSE 0
END <> 0));

CREATE POLICY visible ON public.courses FOR SELECT USING ((
CASE
    WHEN ((EXISTS ( SELECT
       FROM public.orgs shown
      WHERE (shown.sourced_id = courses.org_id))) OR (EXISTS ( SELECT
       FROM public.classes taught
      WHERE (taught.course_id = courses.sourced_id)))) THEN 1
    ELSE 0
END <> 0));

CREATE POLICY visible ON public.demographics FOR SELECT USING ((
CASE
    WHEN (( SELECT (NULLIF(current_setting('roster.everyone'::text, true), ''::text))::boolean AS "nullif") OR (EXISTS ( SELECT
       FROM public.user_roles held
      WHERE (held.user_id = demographics.sourced_id)))) THEN 1
    ELSE 0
END <> 0));

CREATE POLICY visible ON public.documents FOR SELECT USING ((
CASE
    WHEN (((district_id = ANY (( SELECT (NULLIF(current_setting('roster.granted_districts'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (needs <@ ( SELECT (NULLIF(current_setting('roster.granted_orgs'::text, true), ''::text))::text[] AS "nullif"))) AND ((NOT needs_guardians) OR ( SELECT (NULLIF(current_setting('roster.guardians'::text, true), ''::text))::boolean AS "nullif")) AND (shelf IN ( SELECT held.id
       FROM (public.shelves held
         JOIN public.roster_state state ON ((state.revision = held.revision)))))) THEN 1
    ELSE 0
END <> 0));

CREATE POLICY visible ON public.enrollments FOR SELECT USING ((
CASE
    WHEN ((EXISTS ( SELECT
       FROM public.orgs granted
      WHERE ((granted.sourced_id = enrollments.school_id) AND ((granted.district_id = ANY (( SELECT (NULLIF(current_setting('roster.granted_districts'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (granted.sourced_id = ANY (( SELECT (NULLIF(current_setting('roster.granted_schools'::text, true), ''::text))::text[] AS "nullif")::text[])))))) AND (EXISTS ( SELECT
       FROM public.classes taught
      WHERE (taught.sourced_id = enrollments.class_id))) AND (EXISTS ( SELECT
       FROM public.user_roles held
      WHERE (held.user_id = enrollments.user_id)))) THEN 1
    ELSE 0
END <> 0));

CREATE POLICY visible ON public.orgs FOR SELECT USING ((
CASE
    WHEN ((district_id = ANY (( SELECT (NULLIF(current_setting('roster.granted_districts'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (sourced_id = ANY (( SELECT (NULLIF(current_setting('roster.granted_schools'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (sourced_id = ANY (( SELECT (NULLIF(current_setting('roster.districts_above'::text, true), ''::text))::text[] AS "nullif")::text[]))) THEN 1
    ELSE 0
END <> 0));

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
    WHEN ((EXISTS ( SELECT
       FROM public.orgs granted
      WHERE ((granted.sourced_id = user_roles.org_id) AND ((granted.district_id = ANY (( SELECT (NULLIF(current_setting('roster.granted_districts'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (granted.sourced_id = ANY (( SELECT (NULLIF(current_setting('roster.granted_schools'::text, true), ''::text))::text[] AS "nullif")::text[])))))) AND ((role <> ALL (ARRAY['guardian'::text, 'parent'::text, 'relative'::text])) OR ( SELECT (NULLIF(current_setting('roster.guardians'::text, true), ''::text))::boolean AS "nullif"))) THEN 1
    ELSE 0
END <> 0));

CREATE POLICY visible ON public.users FOR SELECT USING ((
CASE
    WHEN (( SELECT (NULLIF(current_setting('roster.everyone'::text, true), ''::text))::boolean AS "nullif") OR (EXISTS ( SELECT
       FROM public.user_roles held
      WHERE (held.user_id = users.sourced_id)))) THEN 1
    ELSE 0
END <> 0));

GRANT USAGE ON SCHEMA public TO serving_role;

REVOKE ALL ON FUNCTION public.admit_client(client text, secret_version numeric, rights_version numeric, signed_by text, guardians boolean, OUT vendor integer, OUT districts text[], OUT schools text[], OUT revision bigint, OUT as_of timestamp with time zone, OUT deletions_since timestamp with time zone, OUT opening text, OUT everyone boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION public.admit_client(client text, secret_version numeric, rights_version numeric, signed_by text, guardians boolean, OUT vendor integer, OUT districts text[], OUT schools text[], OUT revision bigint, OUT as_of timestamp with time zone, OUT deletions_since timestamp with time zone, OUT opening text, OUT everyone boolean) TO serving_role;

REVOKE ALL ON FUNCTION public.client_stands(client text, secret_version numeric, rights_version numeric, signed_by text, known_vendor integer, known_revision bigint, known_as_of timestamp with time zone, known_deletions_since timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION public.client_stands(client text, secret_version numeric, rights_version numeric, signed_by text, known_vendor integer, known_revision bigint, known_as_of timestamp with time zone, known_deletions_since timestamp with time zone) TO serving_role;

REVOKE ALL ON FUNCTION public.find_key_holder(hash bytea, OUT vendor integer, OUT key_prefix text, OUT enabled boolean, OUT grant_version integer, OUT districts text[], OUT schools text[], OUT flags text[], OUT requests_per_second integer, OUT burst integer, OUT requests_per_day integer, OUT live_keys text[], OUT revision bigint, OUT as_of timestamp with time zone, OUT deletions_since timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION public.find_key_holder(hash bytea, OUT vendor integer, OUT key_prefix text, OUT enabled boolean, OUT grant_version integer, OUT districts text[], OUT schools text[], OUT flags text[], OUT requests_per_second integer, OUT burst integer, OUT requests_per_day integer, OUT live_keys text[], OUT revision bigint, OUT as_of timestamp with time zone, OUT deletions_since timestamp with time zone) TO serving_role;

REVOKE ALL ON FUNCTION public.grants_every_org(districts text[], schools text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION public.grants_every_org(districts text[], schools text[]) TO serving_role;

REVOKE ALL ON FUNCTION public.keep_sight(districts text[], schools text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION public.keep_sight(districts text[], schools text[]) TO serving_role;

REVOKE ALL ON FUNCTION public.readmit_client(client text, secret_version numeric, rights_version numeric, signed_by text, guardians boolean, known_vendor integer, known_revision bigint, known_as_of timestamp with time zone, known_deletions_since timestamp with time zone, known_opening text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.readmit_client(client text, secret_version numeric, rights_version numeric, signed_by text, guardians boolean, known_vendor integer, known_revision bigint, known_as_of timestamp with time zone, known_deletions_since timestamp with time zone, known_opening text) TO serving_role;

REVOKE ALL ON FUNCTION public.recall_document(client text, secret_version numeric, rights_version numeric, signed_by text, guardians boolean, known_vendor integer, known_revision bigint, known_as_of timestamp with time zone, known_deletions_since timestamp with time zone, shelf_key text, record text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.recall_document(client text, secret_version numeric, rights_version numeric, signed_by text, guardians boolean, known_vendor integer, known_revision bigint, known_as_of timestamp with time zone, known_deletions_since timestamp with time zone, shelf_key text, record text) TO serving_role;

REVOKE ALL ON FUNCTION public.set_sight(districts text[], schools text[], guardians boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION public.set_sight(districts text[], schools text[], guardians boolean) TO serving_role;

GRANT SELECT(revision) ON TABLE public.roster_state TO serving_role;

GRANT SELECT(as_of) ON TABLE public.roster_state TO serving_role;

GRANT SELECT(deletions_since) ON TABLE public.roster_state TO serving_role;

REVOKE ALL ON FUNCTION public.standing_client(client text, secret_version numeric, rights_version numeric, signed_by text) FROM PUBLIC;

GRANT SELECT ON TABLE public.academic_sessions TO serving_role;

GRANT SELECT ON TABLE public.class_terms TO serving_role;

GRANT SELECT ON TABLE public.classes TO serving_role;

GRANT SELECT ON TABLE public.courses TO serving_role;

GRANT SELECT ON TABLE public.demographics TO serving_role;

GRANT SELECT ON TABLE public.documents TO serving_role;

GRANT SELECT ON TABLE public.enrollments TO serving_role;

GRANT SELECT ON TABLE public.orgs TO serving_role;

GRANT SELECT(id) ON TABLE public.shelves TO serving_role;

GRANT SELECT(key) ON TABLE public.shelves TO serving_role;

GRANT SELECT(revision) ON TABLE public.shelves TO serving_role;

GRANT SELECT ON TABLE public.user_agents TO serving_role;

GRANT SELECT ON TABLE public.user_profiles TO serving_role;

GRANT SELECT ON TABLE public.user_roles TO serving_role;

GRANT SELECT ON TABLE public.users TO serving_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.walk_chunks TO serving_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.walks TO serving_role;
