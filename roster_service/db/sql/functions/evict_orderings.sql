-- Removes the orderings of older revisions that no pull reads, and the pulls that ended more than a day ago: until then,
-- the service refuses a page of an ended pull. The orderings of one query
-- that were made together, one for each feed, count as one. Of the others, it removes of each vendor the oldest ones
-- beyond half of the bounds, and beyond the bounds the oldest ones of the vendors that have most: so a vendor within its
-- even share of the bounds loses none, however many orderings others make. It keeps the newest orderings of each vendor,
-- however large they are. It does nothing while another worker runs it. It runs as the owner of the tables, because the
-- serving role sees only the orderings that the admission of a request opens.
CREATE OR REPLACE FUNCTION evict_orderings(most_bytes bigint, most_orderings bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF NOT pg_try_advisory_xact_lock(1869767785) THEN
        RETURN;
    END IF;
    DELETE FROM pulls pull WHERE pull.ends_at <= now() - interval '1 day';
    WITH together AS (
        SELECT made.vendor_id, made.made_at, max(made.id) AS id, array_agg(made.id) AS ids,
            coalesce(sum(made.bytes), 0) AS bytes
        FROM orderings made
        WHERE (made.feed_id, made.revision, split_part(made.visible_set, ' ', 1)) IN (
                SELECT seen.feed_id, seen.revision, seen.visible_set FROM visible_feeds seen
            ) OR (made.query, made.feed_id, made.visible_set, made.revision) IN (
                SELECT pull.query, part.feed_id, part.visible_set, part.revision
                FROM pulls pull
                CROSS JOIN unnest(pull.feed_ids, pull.visible_sets, pull.feed_revisions)
                    AS part (feed_id, visible_set, revision)
                WHERE pull.ends_at > now()
            )
        GROUP BY made.vendor_id, made.query, made.made_at
    ), valid AS (
        -- With the number and the bytes of the newer ones of the same vendor.
        SELECT made.*, row_number() OVER own - 1 AS own_newer, sum(made.bytes) OVER own - made.bytes AS own_bytes
        FROM together made
        WINDOW own AS (PARTITION BY made.vendor_id ORDER BY made.made_at DESC, made.id DESC)
    ), ranked AS (
        -- The bounds are filled with the newest ones of each vendor, then with the next ones of each, and so on.
        SELECT ranking.ids, ranking.own_newer, ranking.own_bytes,
            row_number() OVER (ORDER BY ranking.own_newer, ranking.made_at DESC, ranking.id DESC) AS place,
            sum(ranking.bytes) OVER (ORDER BY ranking.own_bytes, ranking.made_at DESC, ranking.id DESC) - ranking.bytes
                AS bytes
        FROM valid ranking
    ), kept AS (
        SELECT unnest(chosen.ids) AS id FROM ranked chosen
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
REVOKE ALL ON FUNCTION evict_orderings FROM PUBLIC;
