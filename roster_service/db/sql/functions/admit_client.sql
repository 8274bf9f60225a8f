-- Admits the client of an access token or of a signed request for the rest of the transaction: it sets the key that the
-- policies compare, whether guardians are visible, and the client's part in the state of the roster. It returns false,
-- and admits nobody, if the token is no longer valid; `signed_by` is the key that signed it, NULL for a signed request.
-- With `slots`, the transaction takes one of so many slots of the vendor, and gives it back when it ends, however it
-- ends. While all of them are taken, the function returns NULL, admits nobody, and sets `roster.refusal`; so does it, and
-- returns false, for a vendor without any grant, and for one whose agreement does not hold now. The arguments include
-- the vendor's random key, so a session cannot be admitted with made-up arguments. It runs as the owner of the tables,
-- because the serving role cannot read accounts.
CREATE OR REPLACE FUNCTION admit_client(
    client text, vendor numeric, client_version numeric, grant_version numeric, visibility_key uuid,
    signed_by text, guardians boolean, slots integer DEFAULT NULL
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
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
REVOKE ALL ON FUNCTION admit_client FROM PUBLIC;
