-- Admits the client of an access token for the rest of the transaction: it sets the key that the policies compare, the
-- hash of the client's visible orgs, and whether guardians are visible. It returns false, and admits nobody, if the
-- token is no longer valid. The arguments include the vendor's random key, which the token carries, so a session cannot
-- be admitted with made-up arguments. It runs as the owner of the tables, because the serving role cannot read
-- accounts.
CREATE OR REPLACE FUNCTION admit_client(
    client text, vendor numeric, client_version numeric, grant_version numeric, visibility_key uuid,
    signed_by text, guardians boolean
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    admitted vendors;
BEGIN
    SELECT found.* INTO admitted
    FROM oauth_clients asking JOIN vendors found ON found.id = asking.vendor_id
    WHERE asking.client_id = client AND asking.enabled AND asking.version = client_version
        AND found.id = vendor AND found.enabled AND found.grant_version = admit_client.grant_version
        AND found.visibility_key = admit_client.visibility_key
        AND EXISTS (
            SELECT FROM signing_keys known
            WHERE known.key_id = signed_by AND (known.retired_at IS NULL OR known.retired_at > now())
        );
    PERFORM set_config('roster.visibility_key', coalesce(admitted.visibility_key::text, ''), true),
        set_config('roster.visible_set', coalesce(
            admitted.visible_set || CASE WHEN guardians THEN ' with guardians' ELSE '' END, ''
        ), true),
        set_config('roster.guardians', (guardians AND admitted.id IS NOT NULL)::text, true);
    RETURN admitted.id IS NOT NULL;
END
$$;
REVOKE ALL ON FUNCTION admit_client(text, numeric, numeric, numeric, uuid, text, boolean) FROM PUBLIC;
