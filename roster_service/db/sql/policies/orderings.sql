-- All callers who see the orgs for which an ordering was made share it, whatever their vendor. The visible feeds have the
-- salted hashes of these orgs: without an admission, no ordering can be read, made or removed.
CREATE POLICY visible ON orderings USING (
    visible_set IN (
        SELECT seen.visible_set
            || CASE WHEN current_setting('roster.guardians', true) = 'true' THEN ' with guardians' ELSE '' END
            || CASE
                WHEN NULLIF(current_setting('roster.floor', true), '')::timestamptz >= seen.first_departure
                THEN ' since ' || current_setting('roster.floor', true) ELSE ''
            END
        FROM visible_feeds seen
    )
);
ALTER TABLE orderings ENABLE ROW LEVEL SECURITY;
