-- The vendor of an API key, by the key's hash, with all that a login or a request of the vendor interface needs. It
-- runs as the owner of the tables: the role that serves reads no account, key or secret by itself.
CREATE OR REPLACE FUNCTION find_key_holder(
    hash bytea,
    OUT vendor integer, OUT key_prefix text, OUT enabled boolean, OUT grant_version integer,
    OUT districts text[], OUT schools text[], OUT flags text[],
    OUT requests_per_second integer, OUT burst integer, OUT requests_per_day integer, OUT live_keys text[],
    OUT revision bigint, OUT as_of timestamptz, OUT deletions_since timestamptz
) RETURNS SETOF record
LANGUAGE plpgsql STABLE ROWS 1 SECURITY DEFINER SET search_path FROM CURRENT AS $$
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
REVOKE ALL ON FUNCTION find_key_holder(bytea) FROM PUBLIC;
