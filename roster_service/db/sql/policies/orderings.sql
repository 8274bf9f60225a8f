-- All callers who see the orgs for which an ordering was made share it, whatever their vendor. The visible feeds have the
-- salted hashes of these orgs: without an admission, no ordering can be read, made or removed. An ordering that hides what
-- left before the floor of the caller stays its own, also when a purge has deleted these departures.
CREATE POLICY visible ON orderings USING (
    visible_set IN (
        SELECT seen.visible_set
            || CASE WHEN current_setting('roster.guardians', true) = 'true' THEN ' with guardians' ELSE '' END
            || part.since
        FROM visible_feeds seen
        CROSS JOIN LATERAL (
            SELECT greatest(seen.floor, NULLIF(current_setting('roster.floor', true), '')::timestamptz) AS floor
        ) own
        CROSS JOIN LATERAL (
            VALUES (' since ' || extract(epoch FROM own.floor)), (CASE WHEN own.floor >= seen.first_departure THEN NULL ELSE '' END)
        ) part (since)
        WHERE part.since IS NOT NULL
    )
);
ALTER TABLE orderings ENABLE ROW LEVEL SECURITY;
