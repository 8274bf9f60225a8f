-- PostgreSQL's own `lower`, declared LEAKPROOF. PostgreSQL evaluates a policy before the conditions of the query,
-- because an error or a notice of a function could reveal a row that is not visible. It may evaluate a LEAKPROOF
-- condition first, which makes a search of all users several times faster. `lower` reveals nothing but its result, but
-- PostgreSQL does not declare it LEAKPROOF, and only a superuser can.
CREATE OR REPLACE FUNCTION folding_lower(text) RETURNS text
LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'lower';
