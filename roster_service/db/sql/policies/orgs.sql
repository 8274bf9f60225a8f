-- An org is visible if a row of visible_orgs says so. A policy that reads another table gets the rows that the other
-- table's policy shows. The CASE keeps the planner from guessing that the condition halves the rows: the query filter
-- has left visible ones only.
CREATE POLICY visible ON orgs FOR SELECT USING (CASE WHEN
    EXISTS (SELECT FROM visible_orgs seen WHERE seen.org_id = orgs.sourced_id)
THEN 1 ELSE 0 END <> 0);
ALTER TABLE orgs ENABLE ROW LEVEL SECURITY;
