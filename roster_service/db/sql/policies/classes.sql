-- A class is visible if its school is granted without rules, or a group has it; the district of a granted school is visible, and its classes are not. A
-- policy that reads another table gets the rows that the other table's policy shows. The CASE keeps the planner from
-- guessing that the condition halves the rows: the query filter has left visible ones only.
-- OFFSET 0: as in the policy of user_roles.
CREATE POLICY visible ON classes FOR SELECT USING (CASE WHEN
    EXISTS (SELECT FROM visible_orgs seen WHERE seen.org_id = classes.school_id AND seen.granted)
    OR EXISTS (SELECT FROM group_members m WHERE m.type = 'classes' AND m.sourced_id = classes.sourced_id OFFSET 0)
THEN 1 ELSE 0 END <> 0);
ALTER TABLE classes ENABLE ROW LEVEL SECURITY;
