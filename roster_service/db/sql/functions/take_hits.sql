-- Counts `amount` hits of the counter `name` and returns true; if the window of `seconds` would then have more than
-- `most` hits, it returns false and counts none. Concurrent calls wait for the lock of the counter's row. A hit passes
-- if the hit `most` hits before it is older than the window, so no window ever has more than `most` hits.
-- A hit of the future, of a clock that was set back since, counts no more.
CREATE OR REPLACE FUNCTION take_hits(name text, most integer, seconds double precision, amount integer) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    taken bigint;
    instant timestamptz;
BEGIN
    IF amount > most THEN
        RETURN false;
    END IF;
    SELECT hits INTO taken FROM rate_windows WHERE key = name FOR UPDATE;
    IF NOT FOUND THEN
        INSERT INTO rate_windows AS made (key, hits, last_hit) VALUES (name, 0, clock_timestamp())
        ON CONFLICT (key) DO UPDATE SET hits = made.hits RETURNING hits INTO taken;
    END IF;
    instant := clock_timestamp();
    IF EXISTS (
        SELECT FROM rate_hits
        WHERE key = name AND slot = (taken + amount - 1) % most
        AND hit_at > instant - make_interval(secs => seconds) AND hit_at <= instant
    ) THEN
        RETURN false;
    END IF;
    INSERT INTO rate_hits (key, slot, hit_at)
    SELECT name, (taken + number) % most, instant FROM generate_series(0, amount - 1) AS number
    ON CONFLICT (key, slot) DO UPDATE SET hit_at = excluded.hit_at;
    UPDATE rate_windows SET hits = taken + amount, last_hit = instant WHERE key = name;
    RETURN true;
END
$$;
