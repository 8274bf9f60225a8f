-- Returns a stamp for changes: now, but later than all announced stamps, even if the clock went back. The stamps of
-- records and the floors of vendors and clients are one sequence, so an instant says for both what came before it.
CREATE OR REPLACE FUNCTION next_stamp() RETURNS timestamptz
LANGUAGE sql VOLATILE SET search_path FROM CURRENT AS $$
    SELECT greatest(
        date_trunc('milliseconds', clock_timestamp()),
        interval '1 millisecond' + (SELECT as_of FROM roster_state),
        interval '1 millisecond' + (SELECT max(floor) FROM vendors),
        interval '1 millisecond' + (SELECT max(floor) FROM oauth_clients),
        interval '1 millisecond' + (SELECT max(greatest(since, until)) FROM kept_people)
    )
$$;
REVOKE ALL ON FUNCTION next_stamp FROM PUBLIC;
