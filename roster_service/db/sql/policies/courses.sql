-- A course is visible if its org is visible, other than by rules alone, or one of its active classes is. A policy that reads another table gets the rows
-- that the other table's policy shows. The CASE keeps the planner from guessing that the condition halves the rows: the
-- query filter has left visible ones only.
CREATE POLICY visible ON courses FOR SELECT USING (CASE WHEN
    EXISTS (SELECT FROM visible_orgs seen WHERE seen.org_id = courses.org_id AND NOT seen.narrowed)
    OR EXISTS (SELECT FROM classes taught WHERE taught.course_id = courses.sourced_id AND taught.status = 'active')
THEN 1 ELSE 0 END <> 0);
ALTER TABLE courses ENABLE ROW LEVEL SECURITY;
