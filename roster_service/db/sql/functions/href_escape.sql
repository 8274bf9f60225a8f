-- Returns an id as one segment of a URL: every byte outside the unreserved characters of RFC 3986 becomes %XX. Nearly
-- all ids need no escaping, and statements do not call it for them (roster_service/roster/json_text.py).
CREATE OR REPLACE FUNCTION href_escape(id text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT string_agg(
        CASE WHEN piece ~ '^[A-Za-z0-9._~-]$' THEN piece
        ELSE upper(regexp_replace(encode(convert_to(piece, 'UTF8'), 'hex'), '(..)', '%\1', 'g')) END,
        '' ORDER BY place)
    FROM regexp_split_to_table(id, '') WITH ORDINALITY AS pieces (piece, place)
$$;
