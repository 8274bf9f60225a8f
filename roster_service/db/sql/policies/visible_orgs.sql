-- The visible orgs of a vendor are visible with the vendor's random key, which an admission sets for the transaction. A
-- setting that was not set, or is left from another transaction of the session, reads as NULL: then no row is visible,
-- here and in every table whose policy reads this one. PostgreSQL evaluates the scalar subquery once a statement.
CREATE POLICY visible ON visible_orgs FOR SELECT USING (
    key = (SELECT NULLIF(current_setting('roster.visibility_key', true), '')::uuid)
);
ALTER TABLE visible_orgs ENABLE ROW LEVEL SECURITY;
