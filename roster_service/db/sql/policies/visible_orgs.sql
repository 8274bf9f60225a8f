-- The rows that say which orgs a vendor sees are open to who has the vendor's random key, which an admission sets for the
-- transaction. A setting that was not set, or is left from another transaction of the session, reads as NULL: then no
-- row is visible, here and in every table whose policy asks this one. The scalar subquery is evaluated once a statement.
CREATE POLICY visible ON visible_orgs FOR SELECT USING (
    key = (SELECT NULLIF(current_setting('roster.visibility_key', true), '')::uuid)
);
ALTER TABLE visible_orgs ENABLE ROW LEVEL SECURITY;
