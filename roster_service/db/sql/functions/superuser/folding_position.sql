-- PostgreSQL's own `strpos`, declared LEAKPROOF. A policy is checked before a condition of the caller, because an error
-- or a notice of a function could tell of a row that is not shown; a LEAKPROOF condition may come first, which makes a
-- search of all users several times cheaper. `strpos` tells nothing but its result, but PostgreSQL does not declare it
-- so, and only a superuser can.
CREATE OR REPLACE FUNCTION folding_position(text, text) RETURNS integer
LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF AS 'textpos';
