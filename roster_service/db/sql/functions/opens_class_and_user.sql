-- Whether the visible orgs open both the class and the user of an enrollment, without rules. The policy of the enrollments
-- asks it for the few whose school does not open them: inside the policy, PostgreSQL would plan and start these
-- look-ups, and the policies of three tables, for every statement that reads enrollments. It runs as its caller, so that
-- the policies hold; its body is parsed here, so that no search path changes what it reads.
CREATE OR REPLACE FUNCTION opens_class_and_user(class text, person text) RETURNS boolean
LANGUAGE sql STABLE BEGIN ATOMIC
    SELECT EXISTS (
        SELECT FROM classes taught JOIN visible_orgs seen ON seen.org_id = taught.school_id AND seen.granted
        WHERE taught.sourced_id = class COLLATE "C"
    )
    AND EXISTS (
        SELECT FROM user_roles held JOIN visible_orgs seen ON seen.org_id = held.org_id AND seen.granted
        WHERE held.user_id = person COLLATE "C"
    );
END;
