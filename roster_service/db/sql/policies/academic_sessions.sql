-- An academic session is visible if its feed brings a visible org: calendars have no org of their own in OneRoster. A
-- policy that reads another table gets the rows that the other table's policy shows. The CASE keeps the planner from
-- guessing that the condition halves the rows: the query filter has left visible ones only.
CREATE POLICY visible ON academic_sessions FOR SELECT USING (CASE WHEN
    EXISTS (SELECT FROM visible_orgs seen WHERE seen.feed_id = academic_sessions.feed_id)
THEN 1 ELSE 0 END <> 0);
ALTER TABLE academic_sessions ENABLE ROW LEVEL SECURITY;
