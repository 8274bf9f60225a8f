"""The order in which records are removed from the roster: a table comes after all tables that refer to it."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from roster_service.db.tables import (
    academic_sessions,
    class_terms,
    classes,
    courses,
    demographics,
    departures,
    enrollments,
    orgs,
    user_agents,
    user_profiles,
    user_roles,
    users,
    visibility_labels,
)


@dataclass(frozen=True)
class ReferringColumn:
    """A column that refers to the records of a step's table. `owner`: the column with the id of the referring record,
    if that record is in the same table as its target."""

    column: sa.Column[str]
    owner: sa.Column[str] | None = None


@dataclass(frozen=True)
class PurgeStep:
    """The purge of one table. `referring`: the columns that refer to its records; `parts`: the owner columns of the
    parts that the purge removes with a record."""

    table: sa.Table
    referring: tuple[ReferringColumn, ...] = ()
    parts: tuple[sa.Column[str], ...] = ()


PURGE_ORDER: tuple[PurgeStep, ...] = (
    PurgeStep(enrollments),
    PurgeStep(demographics),
    PurgeStep(
        users,
        (
            ReferringColumn(enrollments.c.user_id),
            ReferringColumn(demographics.c.sourced_id),
            # A student and a guardian refer to each other, so the purge may remove them together.
            ReferringColumn(user_agents.c.agent_id, owner=user_agents.c.user_id),
        ),
        parts=(user_roles.c.user_id, user_profiles.c.user_id, user_agents.c.user_id),
    ),
    PurgeStep(classes, (ReferringColumn(enrollments.c.class_id),), parts=(class_terms.c.class_id,)),
    PurgeStep(courses, (ReferringColumn(classes.c.course_id),)),
    PurgeStep(
        academic_sessions,
        (
            ReferringColumn(class_terms.c.session_id),
            ReferringColumn(courses.c.school_year_id),
            ReferringColumn(academic_sessions.c.parent_id, owner=academic_sessions.c.sourced_id),
        ),
    ),
    PurgeStep(
        orgs,
        (
            ReferringColumn(courses.c.org_id),
            ReferringColumn(classes.c.school_id),
            ReferringColumn(enrollments.c.school_id),
            ReferringColumn(user_roles.c.org_id),
            ReferringColumn(users.c.primary_org_id),
            ReferringColumn(orgs.c.parent_id, owner=orgs.c.sourced_id),
        ),
    ),
)


def delete_records(connection: sa.Connection, feed_id: int) -> None:
    """Deletes all records of a feed with their parts, departures and labels. No record of another feed refers to
    them."""
    for step in PURGE_ORDER:
        own = step.table.c.feed_id == feed_id
        for owner in step.parts:
            connection.execute(sa.delete(owner.table).where(owner.in_(sa.select(step.table.c.sourced_id).where(own))))
        connection.execute(sa.delete(step.table).where(own))
    for table in (departures, visibility_labels):
        connection.execute(sa.delete(table).where(table.c.feed_id == feed_id))
