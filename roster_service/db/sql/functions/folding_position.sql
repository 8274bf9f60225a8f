-- PostgreSQL's own `strpos`, under the name that contains_folded calls. The planner puts the body in the place of the
-- call. superuser/folding_position.sql takes the place of this function where the owner is a superuser.
CREATE OR REPLACE FUNCTION folding_position(text, text) RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT strpos($1, $2)
$$;
