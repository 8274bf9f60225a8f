-- The vendor of an access token and the state of the roster; no row where the token counts no longer. The one place
-- that says under which facts a client is valid: client and vendor are enabled, secret and grants are those that the
-- token was given for, and its signing key is not retired. The planner puts the body into the queries of the functions
-- that call it, which run as the owner of the accounts; nobody else may call it.
CREATE OR REPLACE FUNCTION standing_client(
    client text, secret_version numeric, rights_version numeric, signed_by text
) RETURNS TABLE (vendor integer, revision bigint, as_of timestamptz, deletions_since timestamptz)
LANGUAGE sql STABLE ROWS 1 BEGIN ATOMIC
    SELECT found.id, state.revision, state.as_of, state.deletions_since
    FROM oauth_clients asking JOIN vendors found ON found.id = asking.vendor_id CROSS JOIN roster_state state
    WHERE asking.client_id = client AND asking.enabled AND asking.version = secret_version
    AND found.enabled AND found.grant_version = rights_version
    AND EXISTS (SELECT FROM signing_keys WHERE key_id = signed_by AND (retired_at IS NULL OR retired_at > now()));
END;
REVOKE ALL ON FUNCTION standing_client(text, numeric, numeric, text) FROM PUBLIC;
