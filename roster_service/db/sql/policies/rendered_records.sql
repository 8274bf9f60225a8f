-- A rendered record is visible if all its required orgs are granted, and, if it requires that, the caller sees
-- guardians. For a district that is granted as a whole, one comparison decides, and PostgreSQL does not read the list
-- of granted orgs. A setting that was not set, or is left from another transaction of the session, reads as NULL: then
-- no guardian is visible. A policy that reads another table gets the rows that the other table's policy shows. The CASE
-- keeps the planner from guessing that the condition halves the rows: the query filter has left visible ones only.
CREATE POLICY visible ON rendered_records FOR SELECT USING (CASE WHEN
    (district_id IN (SELECT seen.org_id FROM visible_orgs seen WHERE seen.whole_district)
        OR required_orgs <@ ARRAY(SELECT seen.org_id FROM visible_orgs seen WHERE seen.granted))
    AND (NOT requires_guardians OR (SELECT NULLIF(current_setting('roster.guardians', true), '')::boolean))
THEN 1 ELSE 0 END <> 0);
ALTER TABLE rendered_records ENABLE ROW LEVEL SECURITY;
