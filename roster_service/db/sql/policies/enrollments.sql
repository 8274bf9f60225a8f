-- An enrollment is visible if its school is granted, and its class and its user are visible, all without rules; or if one
-- group has it, its class and its user. Of nearly all of them the school opens class and user, too; only of the others
-- are these looked up. A policy that reads another table gets the rows that the other table's policy shows. The CASE
-- keeps the planner from guessing that the condition halves the rows: the query filter has left visible ones only. None is
-- visible of a person who is kept from the vendor, as in the policy of user_roles, which says what OFFSET 0 is for.
CREATE POLICY visible ON enrollments FOR SELECT USING (CASE WHEN
    (EXISTS (SELECT FROM visible_orgs seen WHERE seen.org_id = enrollments.school_id AND seen.granted)
    AND (school_opens OR (
        EXISTS (
            SELECT FROM classes taught JOIN visible_orgs seen ON seen.org_id = taught.school_id AND seen.granted
            WHERE taught.sourced_id = enrollments.class_id
        )
        AND EXISTS (
            SELECT FROM user_roles held JOIN visible_orgs seen ON seen.org_id = held.org_id AND seen.granted
            WHERE held.user_id = enrollments.user_id
        )
    ))
    OR EXISTS (
        SELECT FROM group_members own
        JOIN group_members taught ON taught.group_id = own.group_id
        JOIN group_members person ON person.group_id = own.group_id
        WHERE own.type = 'enrollments' AND own.sourced_id = enrollments.sourced_id
            AND taught.type = 'classes' AND taught.sourced_id = enrollments.class_id
            AND person.type = 'users' AND person.sourced_id = enrollments.user_id
            AND person.role NOT IN ('guardian', 'parent', 'relative')
        OFFSET 0
    ))
    AND NOT ((SELECT EXISTS (SELECT FROM kept_people)) AND EXISTS (
        SELECT FROM kept_people kept WHERE kept.user_id = enrollments.user_id AND kept.until IS NULL
        OFFSET 0
    ))
THEN 1 ELSE 0 END <> 0);
ALTER TABLE enrollments ENABLE ROW LEVEL SECURITY;
