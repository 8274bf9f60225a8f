"""Checks groups: whether the members of each are what the rules of its grant open. It is written apart from the
statements that make the groups (roster_service/feeds/sharing_members.py); the filters of the rules alone mean the same.

Each night and `roster db check` ask it, and so do tests after each of their steps.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import sqlalchemy as sa

from roster_service.db.tables import classes, users, vendor_grants
from roster_service.errors import RosterServiceError

_GUARDIANS = "('guardian', 'parent', 'relative')"
# `students`, `classes`: the ids that the filters match.
_WRONG = f"""
    WITH granted AS (
        SELECT sourced_id FROM orgs
        WHERE CASE WHEN :school IS NULL THEN district_id = :district ELSE sourced_id = :school END
    ), shared AS (
        SELECT taught.sourced_id, taught.course_id, taught.status, taught.school_id FROM classes taught
        JOIN granted own ON own.sourced_id = taught.school_id WHERE taught.sourced_id = ANY (:classes)
    ), there AS (
        SELECT e.sourced_id, e.user_id, e.role, e.status, shared.school_id FROM enrollments e
        JOIN shared ON shared.sourced_id = e.class_id JOIN granted own ON own.sourced_id = e.school_id
    ), held AS (
        SELECT DISTINCT r.user_id, r.org_id, r.role FROM user_roles r JOIN granted own ON own.sourced_id = r.org_id
    ), pupils AS (
        SELECT held.* FROM held WHERE held.role = 'student' AND held.user_id = ANY (:students) AND (
            NOT :has_classes OR EXISTS (
                SELECT FROM there WHERE there.user_id = held.user_id AND there.role = 'student'
                    AND there.status = 'active'
            )
        )
    ), staff AS (
        SELECT held.* FROM held WHERE held.role <> 'student' AND held.role NOT IN {_GUARDIANS} AND CASE :staff
            WHEN 'all' THEN true
            WHEN 'classes' THEN EXISTS (
                SELECT FROM there WHERE there.user_id = held.user_id AND there.role = 'teacher'
                    AND there.status = 'active' AND there.school_id = held.org_id
            )
            ELSE false
        END
    ), present AS (
        SELECT pupils.user_id FROM pupils JOIN users u ON u.sourced_id = pupils.user_id WHERE u.status = 'active'
            AND (pupils.user_id, pupils.org_id) IN (
                SELECT r.user_id, r.org_id FROM user_roles r WHERE r.role = 'student' AND r.origin = 'export'
            )
    ), related AS (
        SELECT held.* FROM held WHERE :guardians AND held.role IN {_GUARDIANS} AND held.user_id IN (
            SELECT a.agent_id FROM user_agents a JOIN present ON present.user_id = a.user_id
            UNION SELECT a.user_id FROM user_agents a JOIN present ON present.user_id = a.agent_id
        )
    ), wanted AS (
        SELECT 'classes' AS type, sourced_id, '' AS org_id, '' AS role FROM shared
        UNION SELECT 'courses', course_id, '', '' FROM shared WHERE status = 'active'
        UNION SELECT 'users', user_id, org_id, role
            FROM (SELECT * FROM pupils UNION SELECT * FROM staff UNION SELECT * FROM related) opened
        UNION SELECT 'enrollments', sourced_id, '', '' FROM there
            WHERE user_id IN (SELECT user_id FROM pupils UNION SELECT user_id FROM staff)
    ), known AS (
        SELECT type, sourced_id, org_id, role FROM group_members WHERE group_id = :grant
    )
    SELECT DISTINCT type, sourced_id
    FROM ((TABLE wanted EXCEPT TABLE known) UNION ALL (TABLE known EXCEPT TABLE wanted)) wrong ORDER BY 1, 2
"""  # noqa: S608  (texts of our own)


class WrongGroupsError(RosterServiceError):
    """Groups open, or hide, records by mistake. `found`: of `find_wrong_groups`; the message has no id of a record."""

    def __init__(self, found: Mapping[int, Collection[tuple[str, str]]]) -> None:
        listed = ", ".join(f"{len(ids):,} by the grant {grant}" for grant, ids in found.items())
        super().__init__(f"rules open, or hide, records by mistake: {listed}; to revoke and grant again mends it")


def find_wrong_groups(connection: sa.Connection) -> dict[int, list[tuple[str, str]]]:
    """Returns (table, id) of the records that are in a group by mistake, or with another role, or that it lacks; by the
    number of the grant, without groups that are right."""
    # The schemas take half a second to import, which a check without such grants spares.
    from roster_service.schemas.sharing_rules import select_classes, select_students

    found = {}
    for grant in connection.execute(sa.select(vendor_grants).where(vendor_grants.c.staff.is_not(None))).all():
        values = {
            "grant": grant.id,
            "district": grant.district_id,
            "school": grant.school_id,
            "students": list(connection.scalars(sa.select(users.c.sourced_id).where(select_students(grant.students)))),
            "classes": list(connection.scalars(sa.select(classes.c.sourced_id).where(select_classes(grant.classes)))),
            "has_classes": grant.classes is not None,
            "staff": grant.staff,
            "guardians": grant.guardians,
        }
        if wrong := connection.execute(sa.text(_WRONG), values).all():
            found[grant.id] = [(row.type, row.sourced_id) for row in wrong]
    return found
