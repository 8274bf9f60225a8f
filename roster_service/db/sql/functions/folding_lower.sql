-- PostgreSQL's own `lower`, under the name that contains_folded calls. The planner inlines it. If the owner is a
-- superuser, superuser/folding_lower.sql replaces this file.
CREATE OR REPLACE FUNCTION folding_lower(text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT lower($1)
$$;
