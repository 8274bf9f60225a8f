-- Gives a client the secret whose hash is `secret`, if `link` is the hash of its link: not used, not ended, of an enabled
-- client that does not sign requests, whose vendor's agreement has not ended. The former secret and its tokens end. It
-- returns the client's id; NULL, and changes nothing, for any other link. A link counts once: the row stays locked until
-- the end of the transaction. It runs as the owner of the tables, because no role of the service may change accounts.
CREATE OR REPLACE FUNCTION use_secret_link(link bytea, secret bytea, address text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
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

REVOKE ALL ON FUNCTION use_secret_link(bytea, bytea, text) FROM PUBLIC;
