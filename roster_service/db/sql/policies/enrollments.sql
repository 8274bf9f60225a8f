-- An enrollment is visible if its school is granted, and its class and its user are visible. Of nearly all of them the
-- school opens class and user, too; only of the others are these looked up. A policy that reads another table gets the
-- rows that the other table's policy shows. The CASE keeps the planner from guessing that the condition halves the rows:
-- the query filter has left visible ones only.
CREATE POLICY visible ON enrollments FOR SELECT USING (CASE WHEN
    EXISTS (SELECT FROM visible_orgs seen WHERE seen.org_id = enrollments.school_id AND seen.granted)
    AND (school_opens OR (
        EXISTS (SELECT FROM classes taught WHERE taught.sourced_id = enrollments.class_id)
        AND EXISTS (SELECT FROM user_roles held WHERE held.user_id = enrollments.user_id)
    ))
THEN 1 ELSE 0 END <> 0);
ALTER TABLE enrollments ENABLE ROW LEVEL SECURITY;
