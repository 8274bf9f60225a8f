-- Returns the number of hits of the counter `name` in its window of `seconds`, and the seconds until the oldest of them
-- leaves it. For a full window it reads one slot; only for a window that is not full it counts the hits.
CREATE OR REPLACE FUNCTION read_window(
    name text, most integer, seconds double precision, OUT wait double precision, OUT hits integer
)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    instant timestamptz := clock_timestamp();
    edge timestamptz := instant - make_interval(secs => seconds);
    oldest timestamptz;
BEGIN
    SELECT hit_at, most INTO oldest, hits FROM rate_hits
    WHERE key = name AND hit_at > edge AND hit_at <= instant
    AND slot = (SELECT window_of.hits % most FROM rate_windows AS window_of WHERE window_of.key = name);
    IF NOT FOUND THEN
        SELECT min(hit_at), count(*) INTO oldest, hits FROM rate_hits
        WHERE key = name AND hit_at > edge AND hit_at <= instant;
    END IF;
    wait := extract(epoch FROM coalesce(oldest, instant) - edge);
END
$$;
