-- Admits the vendor of an API key, by the hash of the key, for the rest of the transaction, as admit_client does. It
-- returns one row with the data of the vendor that a login or a request of the vendor interface needs. For an unknown
-- key it returns no row; for a disabled vendor it returns a row and admits nobody. It runs as the owner of the tables,
-- because the serving role cannot read accounts, keys and secrets.
CREATE OR REPLACE FUNCTION admit_key_holder(
    hash bytea, guardians boolean,
    OUT vendor integer, OUT key_prefix text, OUT enabled boolean, OUT grant_version integer,
    OUT districts text[], OUT schools text[], OUT flags text[], OUT listed text[],
    OUT requests_per_second integer, OUT burst integer, OUT requests_per_day integer, OUT live_keys text[],
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
    is_open := coalesce(admitted.enabled, false);
    PERFORM set_config('roster.visibility_key', CASE WHEN is_open THEN admitted.visibility_key::text ELSE '' END, true),
        set_config('roster.guardians', (guardians AND is_open)::text, true),
        set_config('roster.floor', '', true), set_config('roster.as_of', '', true);
    RETURN QUERY SELECT admitted.id, known_prefix, admitted.enabled, admitted.grant_version,
        ARRAY(
            SELECT given.district_id FROM vendor_grants given
            WHERE given.vendor_id = admitted.id AND given.school_id IS NULL
        ),
        ARRAY(
            SELECT given.school_id FROM vendor_grants given
            WHERE given.vendor_id = admitted.id AND given.school_id IS NOT NULL
        ),
        admitted.flags, coalesce(admitted.withheld, (SELECT kept.withheld FROM vendor_defaults kept)),
        admitted.requests_per_second, admitted.burst, admitted.requests_per_day,
        ARRAY(
            SELECT known.key_id FROM signing_keys known WHERE known.retired_at IS NULL OR known.retired_at > now()
        ),
        state.revision, state.as_of, state.deletions_since,
        admitted.has_rules
    FROM visible_feeds state WHERE state.vendor_id = admitted.id AND state.feed_id = 0;
END
$$;
REVOKE ALL ON FUNCTION admit_key_holder FROM PUBLIC;
