-- The stored text of a record is visible if all orgs that it needs are granted, guardians are shown if it has them, and
-- it is of this revision: of another one, the grants were compared with other orgs. A district that was granted whole
-- says in one comparison what the list of all its orgs would say, and the list is not read where it is not needed. A
-- setting that was not set, or is left from another transaction of the session, reads as NULL: then no row is visible.
-- Each scalar subquery is evaluated once a statement. A policy that reads another table gets the rows that the other
-- table's policy shows. The CASE keeps the planner from guessing that the condition halves the rows: the query filter
-- has left visible ones only.
CREATE POLICY visible ON documents FOR SELECT USING (CASE WHEN
    (district_id = ANY ((SELECT NULLIF(current_setting('roster.granted_districts', true), '')::text[])::text[])
        OR needs <@ (SELECT NULLIF(current_setting('roster.granted_orgs', true), '')::text[])::text[])
    AND (NOT needs_guardians OR (SELECT NULLIF(current_setting('roster.guardians', true), '')::boolean))
    AND shelf IN (SELECT held.id FROM shelves held JOIN roster_state state ON state.revision = held.revision)
THEN 1 ELSE 0 END <> 0);
ALTER TABLE documents ENABLE ROW LEVEL SECURITY;
