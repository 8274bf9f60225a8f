-- All callers who see the orgs for which an ordering was made share it, whatever their vendor. An admission sets the
-- salted hash of these orgs for the transaction: without an admission, no ordering can be read, made or removed.
CREATE POLICY visible ON orderings USING (
    visible_set = (SELECT NULLIF(current_setting('roster.visible_set', true), ''))
);
ALTER TABLE orderings ENABLE ROW LEVEL SECURITY;
