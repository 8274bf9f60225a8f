-- Returns the numbers of people of the access log, and gives numbers to those who have none. `hashes`: one after the
-- other, each once. It stores with each number that the person is in a row of the day, unless it has stored a day of the
-- week before. New numbers follow the order of the hashes, so that they do not tell the place of a person among the ids
-- of a page. Only one transaction at a time may run it. PostgreSQL expects few hashes, and would look each up by itself.
CREATE OR REPLACE FUNCTION number_people(hashes bytea, day date) RETURNS integer[]
LANGUAGE sql VOLATILE SET enable_nestloop = off SET work_mem = '64MB' AS $$
    WITH shown AS MATERIALIZED (
        SELECT hash, number
        FROM (SELECT substring(hashes, start, 6) AS hash FROM generate_series(1, octet_length(hashes), 6) AS start) one
        LEFT JOIN audit_people USING (hash)
    ), given AS (
        INSERT INTO audit_people (hash, last_day)
        SELECT hash, day FROM shown WHERE number IS NULL ORDER BY hash
        RETURNING number
    ), seen AS (
        UPDATE audit_people SET last_day = day WHERE last_day < day - 7 AND number IN (SELECT number FROM shown)
    )
    SELECT coalesce(array_agg(number), '{}')
    FROM (SELECT number FROM shown WHERE number IS NOT NULL UNION ALL SELECT number FROM given) both_of
$$;
