"""Checks visibility labels: for each table, a statement finds the records whose label is not what follows from the
tables. It is written apart from the statements that make the labels (roster_service/roster/labels.py).

The labels of what a run has changed, and of what hangs on it, are checked before the run commits; those of all records
each night, and by `roster db check`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import sqlalchemy as sa

from roster_service.errors import RosterServiceError

_ROLES = "SELECT DISTINCT held.org_id FROM user_roles held WHERE held.user_id = {user} AND held.role {roles} ORDER BY 1"
_GUARDIANS = "('guardian', 'parent', 'relative')"


def _list_roles(user: str, roles: str) -> str:
    return f"ARRAY({_ROLES.format(user=user, roles=roles)})"


# For each table, a condition on a record `r` and its label `l`: that the label is the right one, and of an enrollment
# also `school_opens`.
_IS_RIGHT: Mapping[str, str] = {
    "classes": """
        (l.any_orgs, l.all_orgs, l.guardian_orgs, l.listed_orgs, l.student_orgs, l.teacher_orgs)
            = (ARRAY[r.school_id], '{}', '{}', '{}', '{}', '{}')
    """,
    "courses": """
        (l.listed_orgs, l.all_orgs, l.guardian_orgs, l.student_orgs, l.teacher_orgs)
            = (ARRAY[r.org_id], '{}', '{}', '{}', '{}')
        AND l.any_orgs = ARRAY(
            SELECT DISTINCT taught.school_id FROM classes taught
            WHERE taught.course_id = r.sourced_id AND taught.status = 'active' AND taught.school_id <> r.org_id
                AND NOT EXISTS (
                    SELECT FROM orgs school WHERE school.sourced_id = taught.school_id AND school.district_id = r.org_id
                )
            ORDER BY 1
        )
    """,
    "users": f"""
        (l.all_orgs, l.listed_orgs) = ('{{}}', '{{}}')
        AND l.any_orgs = {_list_roles("r.sourced_id", f"NOT IN {_GUARDIANS}")}
        AND l.guardian_orgs = {_list_roles("r.sourced_id", f"IN {_GUARDIANS}")}
        AND l.student_orgs = {_list_roles("r.sourced_id", "= 'student'")}
        AND l.teacher_orgs = {_list_roles("r.sourced_id", "= 'teacher'")}
    """,
    # A class that the roster does not have opens nothing. What opens the user counts where no other role than a
    # guardian's is at the two schools.
    "enrollments": f"""
        r.school_opens = (
            EXISTS (SELECT FROM classes taught WHERE taught.sourced_id = r.class_id AND taught.school_id = r.school_id)
            AND EXISTS (
                SELECT FROM user_roles held WHERE held.user_id = r.user_id AND held.org_id = r.school_id
                    AND held.role NOT IN {_GUARDIANS}
            )
        )
        AND (l.listed_orgs, l.student_orgs, l.teacher_orgs) = ('{{}}', '{{}}', '{{}}')
        AND CASE
            WHEN r.school_opens
            THEN (l.all_orgs, l.any_orgs, l.guardian_orgs) = (ARRAY[r.school_id], ARRAY[r.school_id], '{{}}')
            WHEN NOT EXISTS (SELECT FROM classes taught WHERE taught.sourced_id = r.class_id)
            THEN (l.any_orgs, l.guardian_orgs) = ('{{}}', '{{}}')
            ELSE l.all_orgs = ARRAY(
                SELECT r.school_id UNION SELECT taught.school_id FROM classes taught
                WHERE taught.sourced_id = r.class_id ORDER BY 1
            ) AND CASE EXISTS (
                SELECT FROM user_roles held WHERE held.user_id = r.user_id AND held.org_id = ANY (l.all_orgs)
                    AND held.role NOT IN {_GUARDIANS}
            )
                WHEN true THEN (l.any_orgs, l.guardian_orgs) = (l.all_orgs, '{{}}')
                ELSE l.any_orgs = {_list_roles("r.user_id", f"NOT IN {_GUARDIANS}")}
                    AND l.guardian_orgs = {_list_roles("r.user_id", f"IN {_GUARDIANS}")}
            END
        END
    """,  # noqa: S608  (texts of our own)
    "demographics": "r.label_id = (SELECT person.label_id FROM users person WHERE person.sourced_id = r.sourced_id)",
}


# The records whose labels a run with a stamp may have changed, or should have. Courses are few.
_STAMPED = "SELECT sourced_id FROM {} WHERE feed_id = :feed_id AND date_last_modified = :stamp"
_MAY_CHANGE: Mapping[str, str] = {
    "classes": _STAMPED.format("classes"),
    "courses": "SELECT sourced_id FROM courses WHERE feed_id = :feed_id",
    "users": _STAMPED.format("users"),
    "enrollments": f"""
        {_STAMPED.format("enrollments")}
        UNION SELECT sourced_id FROM enrollments WHERE user_id IN ({_STAMPED.format("users")})
        UNION SELECT sourced_id FROM enrollments WHERE class_id IN ({_STAMPED.format("classes")})
    """,  # noqa: S608  (texts of our own)
    "demographics": f"{_STAMPED.format('demographics')} UNION {_STAMPED.format('users')}",
}


class WrongLabelsError(RosterServiceError):
    """The labels of records are not what follows from the tables: a fault of this program. The message names no
    record."""

    def __init__(self, wrong: Mapping[str, list[str]]) -> None:
        counts = ", ".join(f"{len(ids):,} {table}" for table, ids in wrong.items())
        super().__init__(f"the visibility labels of {counts} are not what follows from the roster")


def find_wrong_labels(connection: sa.Connection) -> dict[str, list[str]]:
    """Returns the ids of the records whose label is not the right one, by table, without tables that have none."""
    found = {table: list(connection.scalars(sa.text(_select_wrong(table)))) for table in _IS_RIGHT}
    return {table: wrong for table, wrong in found.items() if wrong}


def require_right_labels(connection: sa.Connection, feed_id: int, stamp: datetime) -> None:
    """Raises WrongLabelsError if the label of a record that the run with this stamp has changed, or of one that hangs
    on it, is not the right one."""
    found = {}
    for table, ids in _MAY_CHANGE.items():
        values = {"feed_id": feed_id, "stamp": stamp}
        found[table] = list(connection.scalars(sa.text(_select_wrong(table, ids)), values))
    if wrong := {table: ids for table, ids in found.items() if ids}:
        raise WrongLabelsError(wrong)


def _select_wrong(table: str, ids: str | None = None) -> str:
    """Selects the ids of the records with a wrong label. `ids`: a SELECT of those that are looked at; None: all."""
    among = "true" if ids is None else f"r.sourced_id IN ({ids})"
    return f"""
        SELECT r.sourced_id FROM {table} r LEFT JOIN visibility_labels l ON l.id = r.label_id
        WHERE (l.feed_id IS DISTINCT FROM r.feed_id OR NOT coalesce({_IS_RIGHT[table]}, false)) AND {among}
    """  # noqa: S608  (texts of our own)
