-- Removes the pulls that have ended, and the orderings of older revisions that no pull reads. Of the others, it removes
-- of each vendor the oldest ones beyond half of the bounds, and beyond the bounds the oldest ones of the vendors that
-- have most: so a vendor within its even share of the bounds loses none, however many orderings others make. It keeps
-- the newest ordering of each vendor, however large that is. It does nothing while another worker runs it. It runs as
-- the owner of the tables, because the serving role sees only the orderings that the admission of a request opens.
CREATE OR REPLACE FUNCTION evict_orderings(most_bytes bigint, most_orderings bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF NOT pg_try_advisory_xact_lock(1869767785) THEN
        RETURN;
    END IF;
    DELETE FROM pulls pull WHERE pull.ends_at <= now();
    WITH valid AS (
        -- With the number and the bytes of the newer orderings of the same vendor.
        SELECT made.id, made.made_at, made.bytes,
            row_number() OVER own - 1 AS own_newer, sum(made.bytes) OVER own - made.bytes AS own_bytes
        FROM orderings made
        WHERE made.revision >= (SELECT state.revision FROM roster_state state)
            OR (made.query, made.revision) IN (SELECT pull.query, pull.revision FROM pulls pull)
        WINDOW own AS (PARTITION BY made.vendor_id ORDER BY made.made_at DESC, made.id DESC)
    ), ranked AS (
        -- The bounds are filled with the newest ordering of each vendor, then with the next one of each, and so on.
        SELECT ranking.id, ranking.own_newer, ranking.own_bytes,
            row_number() OVER (ORDER BY ranking.own_newer, ranking.made_at DESC, ranking.id DESC) AS place,
            sum(ranking.bytes) OVER (ORDER BY ranking.own_bytes, ranking.made_at DESC, ranking.id DESC) - ranking.bytes
                AS bytes
        FROM valid ranking
    ), kept AS (
        SELECT chosen.id FROM ranked chosen
        WHERE chosen.own_newer = 0 OR (
            chosen.own_bytes < most_bytes / 2 AND chosen.own_newer < most_orderings / 2
            AND chosen.bytes < most_bytes AND chosen.place <= most_orderings
        )
    ), gone AS (
        DELETE FROM orderings made WHERE made.id NOT IN (SELECT kept.id FROM kept) RETURNING made.id
    )
    DELETE FROM ordering_chunks chunk USING gone WHERE chunk.ordering_id = gone.id;
END
$$;
REVOKE ALL ON FUNCTION evict_orderings(bigint, bigint) FROM PUBLIC;
