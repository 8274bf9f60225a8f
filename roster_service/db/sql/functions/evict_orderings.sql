-- Removes the orderings of older revisions. Of the others, it removes the oldest ones beyond the bounds, and of each
-- vendor those beyond half of the bounds. It keeps the newest ordering of each vendor, however large that is. It does
-- nothing while another worker runs it. It runs as the owner of the tables, because the serving role sees only the
-- orderings that the admission of a request opens.
CREATE OR REPLACE FUNCTION evict_orderings(most_bytes bigint, most_orderings bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF NOT pg_try_advisory_xact_lock(1869767785) THEN
        RETURN;
    END IF;
    WITH ranked AS (
        SELECT made.id, made.revision,
            row_number() OVER own AS own_place, row_number() OVER every AS place,
            sum(made.bytes) OVER own - made.bytes AS own_bytes, sum(made.bytes) OVER every - made.bytes AS bytes
        FROM orderings made
        WINDOW own AS (PARTITION BY made.vendor_id ORDER BY made.made_at DESC, made.id DESC),
            every AS (ORDER BY made.made_at DESC, made.id DESC)
    ), gone AS (
        DELETE FROM orderings made USING ranked
        WHERE made.id = ranked.id AND (
            ranked.revision < (SELECT state.revision FROM roster_state state)
            OR (ranked.own_place > 1 AND (
                ranked.own_bytes >= most_bytes / 2 OR ranked.own_place > most_orderings / 2
                OR ranked.bytes >= most_bytes OR ranked.place > most_orderings
            ))
        )
        RETURNING made.id
    )
    DELETE FROM ordering_chunks chunk USING gone WHERE chunk.ordering_id = gone.id;
END
$$;
REVOKE ALL ON FUNCTION evict_orderings(bigint, bigint) FROM PUBLIC;
