-- PostgreSQL's own `strpos`, under the name that contains_folded calls. The planner inlines it. If the owner is a
-- superuser, superuser/folding_position.sql replaces this file.
CREATE OR REPLACE FUNCTION folding_position(text, text) RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT strpos($1, $2)
$$;
