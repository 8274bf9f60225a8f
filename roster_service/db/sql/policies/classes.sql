-- A class is visible if its school is granted; the district of a granted school is visible, and its classes are not. A
-- setting that was not set, or is left from another transaction of the session, reads as NULL: then no row is visible.
-- Each scalar subquery is evaluated once a statement. A policy that reads another table gets the rows that the other
-- table's policy shows. The CASE keeps the planner from guessing that the condition halves the rows: the query filter
-- has left visible ones only.
CREATE POLICY visible ON classes FOR SELECT USING (CASE WHEN
    EXISTS (SELECT FROM orgs granted WHERE granted.sourced_id = classes.school_id AND (
        granted.district_id = ANY (
            (SELECT NULLIF(current_setting('roster.granted_districts', true), '')::text[])::text[]
        )
        OR granted.sourced_id = ANY (
            (SELECT NULLIF(current_setting('roster.granted_schools', true), '')::text[])::text[]
        )
    ))
THEN 1 ELSE 0 END <> 0);
ALTER TABLE classes ENABLE ROW LEVEL SECURITY;
