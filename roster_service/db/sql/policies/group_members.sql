-- The members of a group are visible to the vendor whose group it is, guardians only with the right to see them. A policy
-- that reads another table gets the rows that the other table's policy shows.
CREATE POLICY visible ON group_members FOR SELECT USING (
    EXISTS (SELECT FROM visible_groups seen WHERE seen.group_id = group_members.group_id)
    AND (role NOT IN ('guardian', 'parent', 'relative')
        OR (SELECT NULLIF(current_setting('roster.guardians', true), '')::boolean))
);
ALTER TABLE group_members ENABLE ROW LEVEL SECURITY;
