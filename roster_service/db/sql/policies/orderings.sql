-- An ordering is open to who sees the orgs that it was made for, whichever vendor that is. The hash of these orgs is
-- salted, and an admission sets it for the transaction: without one, no ordering can be read, made or removed.
CREATE POLICY visible ON orderings USING (
    visible_set = (SELECT NULLIF(current_setting('roster.visible_set', true), ''))
);
ALTER TABLE orderings ENABLE ROW LEVEL SECURITY;
