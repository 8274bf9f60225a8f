-- Admits the client of an access token or of a signed request for the rest of the transaction: it sets the key that the
-- policies compare, and whether guardians are visible. It returns false, and admits nobody, if the token is no longer
-- valid; `signed_by` is the key that signed it, NULL for a signed request. With `slots`, the transaction takes one of so
-- many slots of the vendor, and gives it back when it ends, however it ends; while all of them are taken, the function
-- returns NULL, admits nobody, and sets `roster.refusal`. The arguments include the vendor's random key, so a session
-- cannot be admitted with made-up arguments. It runs as the owner of the tables, because the serving role cannot read
-- accounts.
CREATE OR REPLACE FUNCTION admit_client(
    client text, vendor numeric, client_version numeric, grant_version numeric, visibility_key uuid,
    signed_by text, guardians boolean, slots integer DEFAULT NULL
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    admitted vendors;
    is_valid boolean;
    has_slot boolean := true;
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
    IF is_valid AND slots IS NOT NULL THEN
        -- Locks of two numbers: all others of this service have one. EXISTS ends with the first slot that is free.
        has_slot := EXISTS (
            SELECT FROM generate_series(1, slots) AS slot WHERE pg_try_advisory_xact_lock(admitted.id, slot)
        );
        IF NOT has_slot THEN
            admitted := NULL;
        END IF;
    END IF;
    PERFORM set_config('roster.visibility_key', coalesce(admitted.visibility_key::text, ''), true),
        set_config('roster.guardians', (guardians AND admitted.id IS NOT NULL)::text, true),
        set_config('roster.refusal', CASE WHEN has_slot THEN '' ELSE 'no slot' END, true);
    RETURN CASE WHEN has_slot THEN is_valid END;
END
$$;
REVOKE ALL ON FUNCTION admit_client(text, numeric, numeric, numeric, uuid, text, boolean, integer) FROM PUBLIC;
