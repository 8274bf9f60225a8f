-- PostgreSQL's own `replace`, under the name that contains_folded calls. The planner inlines it. If the owner is a
-- superuser, superuser/folding_replace.sql replaces this file.
CREATE OR REPLACE FUNCTION folding_replace(text, text, text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT replace($1, $2, $3)
$$;
