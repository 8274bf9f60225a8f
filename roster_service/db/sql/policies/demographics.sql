-- Demographics are visible if one of the user's roles is. For a caller who sees every user, the setting is asked once a
-- statement, and then nothing of any row. A setting that was not set, or is left from another transaction of the
-- session, reads as NULL: then no row is visible. Each scalar subquery is evaluated once a statement. A policy that
-- reads another table gets the rows that the other table's policy shows. The CASE keeps the planner from guessing that
-- the condition halves the rows: the query filter has left visible ones only.
CREATE POLICY visible ON demographics FOR SELECT USING (CASE WHEN
    (SELECT NULLIF(current_setting('roster.everyone', true), '')::boolean)
    OR EXISTS (SELECT FROM user_roles held WHERE held.user_id = demographics.sourced_id)
THEN 1 ELSE 0 END <> 0);
ALTER TABLE demographics ENABLE ROW LEVEL SECURITY;
