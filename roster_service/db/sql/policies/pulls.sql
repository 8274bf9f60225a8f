-- A pull names a query by its hash, and has nothing of the roster: an admitted caller may read all of them, also one
-- whose rights have changed since its first page, which is how it finds out. The policy of the orderings decides what a
-- pull reads.
CREATE POLICY visible ON pulls USING (EXISTS (SELECT FROM visible_orgs));
ALTER TABLE pulls ENABLE ROW LEVEL SECURITY;
