-- Whether a client, and the roster, are still as a worker knows them: what the worker answers without reading the
-- roster is then right. It runs as the owner of the accounts.
CREATE OR REPLACE FUNCTION client_stands(
    client text, secret_version numeric, rights_version numeric, signed_by text,
    known_vendor integer, known_revision bigint, known_as_of timestamptz, known_deletions_since timestamptz
) RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM standing_client(client, secret_version, rights_version, signed_by) found
        WHERE (found.vendor, found.revision, found.as_of, found.deletions_since)
            = (known_vendor, known_revision, known_as_of, known_deletions_since)
    );
END
$$;
REVOKE ALL ON FUNCTION client_stands(text, numeric, numeric, text, integer, bigint, timestamptz, timestamptz)
FROM PUBLIC;
