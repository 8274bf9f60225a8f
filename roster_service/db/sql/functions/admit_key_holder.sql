-- Admits the vendor of an API key, by the hash of the key, for the rest of the transaction, as admit_client does. It
-- returns one row with the data of the vendor that a login or a request of the vendor interface needs. For an unknown
-- key it returns no row; for a disabled vendor, for one whose agreement does not hold now (`not_agreed`), and for one whose
-- grants have another version than `version`, it returns a row and admits nobody. Without `version`, any will do: a request
-- gives the one with which it began, because what it reads follows from the rights of then. It runs as the owner of the
-- tables, because the serving role cannot read accounts, keys and secrets.
CREATE OR REPLACE FUNCTION admit_key_holder(
    hash bytea, guardians boolean, version integer DEFAULT NULL,
    OUT vendor integer, OUT key_prefix text, OUT enabled boolean, OUT grant_version integer,
    OUT districts text[], OUT schools text[], OUT flags text[], OUT listed text[],
    OUT requests_per_second integer, OUT burst integer, OUT requests_per_day integer, OUT live_keys text[],
    OUT agreed_fields text[], OUT agreed_scopes text[], OUT agreed_flags text[],
    OUT agreed_metadata_keys text[], OUT not_agreed text,
    OUT revision bigint, OUT as_of timestamptz, OUT deletions_since timestamptz, OUT has_rules boolean
) RETURNS SETOF record
LANGUAGE plpgsql ROWS 1 SECURITY DEFINER SET search_path FROM CURRENT AS $$
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
REVOKE ALL ON FUNCTION admit_key_holder FROM PUBLIC;
