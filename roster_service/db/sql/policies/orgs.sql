-- An org is visible if it lies in a granted district, is a granted school, or is the district of a granted school. A
-- setting that was not set, or is left from another transaction of the session, reads as NULL: then no row is visible.
-- Each scalar subquery is evaluated once a statement. The CASE keeps the planner from guessing that the condition
-- halves the rows: the query filter has left visible ones only.
CREATE POLICY visible ON orgs FOR SELECT USING (CASE WHEN
    district_id = ANY ((SELECT NULLIF(current_setting('roster.granted_districts', true), '')::text[])::text[])
    OR sourced_id = ANY ((SELECT NULLIF(current_setting('roster.granted_schools', true), '')::text[])::text[])
    OR sourced_id = ANY ((SELECT NULLIF(current_setting('roster.districts_above', true), '')::text[])::text[])
THEN 1 ELSE 0 END <> 0);
ALTER TABLE orgs ENABLE ROW LEVEL SECURITY;
