-- A transaction may read, add and remove the ids of the orderings that the policy of that table shows it.
CREATE POLICY visible ON ordering_chunks USING (
    EXISTS (SELECT FROM orderings own WHERE own.id = ordering_chunks.ordering_id)
);
ALTER TABLE ordering_chunks ENABLE ROW LEVEL SECURITY;
