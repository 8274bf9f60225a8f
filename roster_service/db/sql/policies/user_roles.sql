-- A role of a user is visible if its org is granted without rules or a group has the role, and a guardian's role only with the right to see guardians. A
-- setting that was not set, or is left from another transaction of the session, reads as NULL: then no guardian is
-- visible. PostgreSQL evaluates the scalar subquery once a statement. A policy that reads another table gets the rows
-- that the other table's policy shows. The CASE keeps the planner from guessing that the condition halves the rows: the
-- query filter has left visible ones only. No role is visible of a person who is kept from the vendor: the first EXISTS
-- is asked once a statement, and ends the question for a vendor from which nobody is. With OFFSET 0 PostgreSQL plans a
-- look-up once: otherwise it plans each EXISTS twice, as look-ups and as a hash of the whole table, at each level in which
-- one policy reads a table of another, and takes half as long again to plan a page. Orgs, users and roles keep
-- the hash: whoever reads whole collections needs it.
CREATE POLICY visible ON user_roles FOR SELECT USING (CASE WHEN
    (
        EXISTS (SELECT FROM visible_orgs seen WHERE seen.org_id = user_roles.org_id AND seen.granted)
        OR EXISTS (
            SELECT FROM group_members m
            WHERE m.type = 'users' AND m.sourced_id = user_roles.user_id AND m.org_id = user_roles.org_id
                AND m.role = user_roles.role
            OFFSET 0
        )
    )
    AND (role NOT IN ('guardian', 'parent', 'relative')
        OR (SELECT NULLIF(current_setting('roster.guardians', true), '')::boolean))
    AND NOT ((SELECT EXISTS (SELECT FROM kept_people)) AND EXISTS (
        SELECT FROM kept_people kept WHERE kept.user_id = user_roles.user_id AND kept.until IS NULL
        OFFSET 0
    ))
THEN 1 ELSE 0 END <> 0);
ALTER TABLE user_roles ENABLE ROW LEVEL SECURITY;
