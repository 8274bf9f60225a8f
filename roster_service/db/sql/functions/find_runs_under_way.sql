-- The runs of the sync that are under way, with the stamp of their changes, if they have taken one. The process of a run
-- holds the lock of its feed until it has stored the end of the run (roster_service/feeds/sync_lock.py has the numbers of
-- the lock), so a run whose lock is free was interrupted and will not announce its stamp.
CREATE OR REPLACE FUNCTION find_runs_under_way() RETURNS TABLE (run_id bigint, feed_id integer, stamp timestamptz)
LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
    SELECT run.id, run.feed_id, run.stamp
    FROM sync_runs run JOIN feeds feed ON feed.id = run.feed_id
    WHERE run.outcome = 'running' AND EXISTS (
        SELECT FROM pg_locks lock
        WHERE lock.locktype = 'advisory' AND lock.granted AND lock.classid = 1181050212
            AND lock.objid = (hashtext(feed.name)::bigint & 4294967295)::oid
            AND lock.database = (SELECT own.oid FROM pg_database own WHERE own.datname = current_database())
    )
$$;
REVOKE ALL ON FUNCTION find_runs_under_way FROM PUBLIC;
