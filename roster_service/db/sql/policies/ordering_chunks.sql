-- The ids of an ordering are open to who may read the ordering.
CREATE POLICY visible ON ordering_chunks USING (
    EXISTS (SELECT FROM orderings own WHERE own.id = ordering_chunks.ordering_id)
);
ALTER TABLE ordering_chunks ENABLE ROW LEVEL SECURITY;
