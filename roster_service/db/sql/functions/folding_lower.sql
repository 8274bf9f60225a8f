-- PostgreSQL's own `lower`, under the name that contains_folded calls. The planner puts the body in the place of the
-- call. superuser/folding_lower.sql takes the place of this function where the owner is a superuser.
CREATE OR REPLACE FUNCTION folding_lower(text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT lower($1)
$$;
