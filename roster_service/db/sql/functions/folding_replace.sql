-- PostgreSQL's own `replace`, under the name that contains_folded calls. The planner puts the body in the place of the
-- call. superuser/folding_replace.sql takes the place of this function where the owner is a superuser.
CREATE OR REPLACE FUNCTION folding_replace(text, text, text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT replace($1, $2, $3)
$$;
