-- The stored text of one record, for a client that a worker knows and that has whole districts, in one look and without
-- setting what the policies read: the grants are asked here, and compared with the text as policies/documents.sql does.
-- It runs as the owner of the tables.
CREATE OR REPLACE FUNCTION recall_document(
    client text, secret_version numeric, rights_version numeric, signed_by text, guardians boolean,
    known_vendor integer, known_revision bigint, known_as_of timestamptz, known_deletions_since timestamptz,
    shelf_key text, record text
) RETURNS TABLE (body text, district_id text, needs_guardians boolean)
LANGUAGE plpgsql STABLE ROWS 1 SECURITY DEFINER SET search_path FROM CURRENT AS $$
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
REVOKE ALL ON FUNCTION recall_document(
    text, numeric, numeric, text, boolean, integer, bigint, timestamptz, timestamptz, text, text
) FROM PUBLIC;
