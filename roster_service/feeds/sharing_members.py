"""Which records the rules of grants open.

- a class: its school is granted, and it matches the rule of classes;
- a course: a shared class of it is active;
- a student: of a granted school, who matches the rule of students and, where there is a rule of classes, has an active
  enrollment in a shared class. A guardian's and a member of staff's role opens as the grant says; a role at another
  school than a granted one never; a guardian's not by a student who has an enrollment there, and no role of the export;
- an enrollment: its school is granted, its class is shared, and its user is, other than as a guardian.

Each of them is found anew, or only the candidates: what a transaction changes, and what may follow from that. A
statement finds them for all grants, but for the filters of students and classes, which have one each.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

import sqlalchemy as sa

from roster_service.db.tables import (
    CText,
    Stamp,
    classes,
    courses,
    enrollments,
    group_members,
    orgs,
    user_agents,
    user_roles,
    users,
    vendor_grants,
)
from roster_service.roster.vocabulary import GUARDIAN_ROLES

SelectedRows = sa.Select[Any] | sa.CompoundSelect[Any]
_Part = TypeVar("_Part")


@dataclass(frozen=True)
class Extent:
    """What a grant opens: a district, or a school of it, with its rules. `staff`: None for a grant without rules."""

    district_id: str
    school_id: str | None
    students: str | None
    classes: str | None
    staff: str | None
    guardians: bool


def describe_table(name: str, *texts: str, numbers: Iterable[str] = ()) -> sa.TableClause:
    """Returns a table for `make_temporary`, with columns of texts and before them of numbers."""
    return sa.table(
        name, *(sa.column(number, sa.Integer) for number in numbers), *(sa.column(text, CText) for text in texts)
    )


# What each grant opens, by its number.
WANTED = describe_table("wanted_members", "type", "sourced_id", "org_id", "role", numbers=["grant_id"])
# The orgs that each grant lies in.
GRANTED = describe_table("granted_orgs", "org_id", numbers=["grant_id"])
# The records that may come into a group or leave it; with a `context`, those by which others do, and which stay.
CANDIDATES = describe_table("candidate_members", "type", "sourced_id", "context")
_CONTEXT = "context"
# The tables whose records are members of groups.
MEMBERS = (courses, classes, users, enrollments)


def make_temporary(connection: sa.Connection, made: sa.TableClause) -> None:
    """Makes an empty table, until the end of the transaction."""
    columns = ", ".join(
        f"{column.name} integer"
        if isinstance(column.type, sa.Integer)
        else f"{column.name} text COLLATE \"C\" DEFAULT ''"
        for column in made.c
    )
    connection.exec_driver_sql(f"DROP TABLE IF EXISTS pg_temp.{made.name}")
    connection.exec_driver_sql(f"CREATE TEMPORARY TABLE {made.name} ({columns}) ON COMMIT DROP")


def analyze(connection: sa.Connection, made: sa.TableClause) -> None:
    """Makes planner statistics of a temporary table."""
    connection.exec_driver_sql(f"ANALYZE pg_temp.{made.name}")


# --- the records that extents open ----------------------------------------------------------------------------------


def find_members(connection: sa.Connection, extents: Mapping[int, Extent], *, noted: bool) -> None:
    """Makes the tables WANTED, of the records that the extents open, and GRANTED, each under the number of the extent.
    `noted`: of the candidates alone."""
    _find(connection, extents, [*_OPENED, _select_enrollments], noted=noted)


def find_wanted(connection: sa.Connection, extents: Mapping[int, Extent]) -> None:
    """Makes the tables WANTED, of the classes, the courses and the users that the extents open, and GRANTED."""
    _find(connection, extents, _OPENED, noted=False)


@dataclass(frozen=True)
class _Look:
    """The look for the records of all extents, among all or among the candidates. What a stage has found is in
    WANTED."""

    extents: Mapping[int, Extent]
    noted: bool

    def group_by(self, part: Callable[[Extent], _Part]) -> Mapping[_Part, Collection[int]]:
        """The numbers of the extents that have a part in common."""
        numbers: dict[_Part, list[int]] = {}
        for number, extent in self.extents.items():
            numbers.setdefault(part(extent), []).append(number)
        return numbers

    def among(self, table: sa.Table, column: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
        """The condition that a column has the id of a record that is looked for."""
        return column.in_(_select_candidates(table)) if self.noted else sa.true()

    def select(self, table: sa.Table, number: sa.ColumnElement[int]) -> sa.Select[Any]:
        """Selects the records of a table, as rows of WANTED."""
        kind = sa.literal(table.name, CText).label("type")
        return sa.select(number.label("grant_id"), kind, table.c.sourced_id).where(
            self.among(table, table.c.sourced_id)
        )

    def select_roles(self, numbers: Collection[int]) -> sa.Select[Any]:
        """Selects the roles at the orgs of these extents, as rows of WANTED. As one of several roles of a kind at an
        org, a role is there once."""
        kind = sa.literal(users.name, CText).label("type")
        role = (user_roles.c.user_id.label("sourced_id"), user_roles.c.org_id, user_roles.c.role)
        return (
            sa.select(GRANTED.c.grant_id, kind, *role)
            .distinct()
            .where(
                GRANTED.c.org_id == user_roles.c.org_id,
                GRANTED.c.grant_id.in_(numbers),
                self.among(users, user_roles.c.user_id),
            )
        )


def _find(
    connection: sa.Connection,
    extents: Mapping[int, Extent],
    stages: Iterable[Callable[[_Look], Iterable[SelectedRows]]],
    *,
    noted: bool,
) -> None:
    _find_granted(connection, extents)
    make_temporary(connection, WANTED)
    if noted:
        _keep_context(connection, extents)
    look = _Look({number: extent for number, extent in extents.items() if extent.staff is not None}, noted)
    for select in stages:
        for rows in select(look):
            names = [column.name for column in rows.selected_columns]
            connection.execute(WANTED.insert().from_select(names, rows))
        analyze(connection, WANTED)


def _find_granted(connection: sa.Connection, extents: Mapping[int, Extent]) -> None:
    make_temporary(connection, GRANTED)
    for number, extent in extents.items():
        own = orgs.c.sourced_id == extent.school_id if extent.school_id else orgs.c.district_id == extent.district_id
        rows = sa.select(sa.literal(number, sa.Integer), orgs.c.sourced_id).where(own)
        connection.execute(GRANTED.insert().from_select(["grant_id", "org_id"], rows))
    analyze(connection, GRANTED)


def _keep_context(connection: sa.Connection, grant_ids: Collection[int]) -> None:
    """Adds the members of the groups that the transaction does not move, and by which others are members."""
    by_others = sa.exists().where(
        CANDIDATES.c.type == group_members.c.type,
        CANDIDATES.c.sourced_id == group_members.c.sourced_id,
        CANDIDATES.c.context == _CONTEXT,
    )
    member = (group_members.c[name] for name in ("group_id", "type", "sourced_id", "org_id", "role"))
    rows = sa.select(*member).where(
        group_members.c.group_id.in_(grant_ids),
        by_others,
        ~is_candidate(group_members.c.type, group_members.c.sourced_id),
    )
    connection.execute(WANTED.insert().from_select([column.name for column in WANTED.c], rows))


def _select_classes(look: _Look) -> Iterable[SelectedRows]:
    # The schemas take half a second to import, which a sync without such grants spares.
    from roster_service.schemas.sharing_rules import select_classes

    for filter_, numbers in look.group_by(lambda extent: extent.classes).items():
        yield look.select(classes, GRANTED.c.grant_id).where(
            GRANTED.c.org_id == classes.c.school_id, GRANTED.c.grant_id.in_(numbers), select_classes(filter_)
        )


def _select_courses(look: _Look) -> Iterable[SelectedRows]:
    shared = _found(classes)
    offered = sa.select(shared.c.grant_id, classes.c.course_id).distinct()
    offered = offered.where(classes.c.sourced_id == shared.c.sourced_id, classes.c.status == "active")
    found = offered.subquery()
    yield look.select(courses, found.c.grant_id).where(courses.c.sourced_id == found.c.course_id)


def _select_students(look: _Look) -> Iterable[SelectedRows]:
    from roster_service.schemas.sharing_rules import select_students

    by_rules = look.group_by(lambda extent: (extent.students, extent.classes is not None))
    for (filter_, has_classes), numbers in by_rules.items():
        matching = sa.select(users.c.sourced_id).where(select_students(filter_), look.among(users, users.c.sourced_id))
        rows = look.select_roles(numbers).where(user_roles.c.role == "student", user_roles.c.user_id.in_(matching))
        if has_classes:
            enrolled = _select_enrolled(look, numbers, "student")
            own = sa.select(enrolled.c.grant_id, enrolled.c.user_id)
            rows = rows.where(sa.tuple_(GRANTED.c.grant_id, user_roles.c.user_id).in_(own))
        yield rows


def _select_staff(look: _Look) -> Iterable[SelectedRows]:
    from roster_service.schemas.sharing_rules import Staff

    by_staff = look.group_by(lambda extent: extent.staff)
    is_staff = user_roles.c.role.not_in(("student", *GUARDIAN_ROLES))
    if numbers := by_staff.get(Staff.ALL):
        yield look.select_roles(numbers).where(is_staff)
    if numbers := by_staff.get(Staff.CLASSES):
        # At the school of the class alone.
        teaching = _select_enrolled(look, numbers, "teacher")
        yield look.select_roles(numbers).where(
            is_staff,
            sa.tuple_(GRANTED.c.grant_id, user_roles.c.user_id, user_roles.c.org_id).in_(
                sa.select(teaching.c.grant_id, teaching.c.user_id, teaching.c.class_school_id)
            ),
        )


def _select_guardians(look: _Look) -> Iterable[SelectedRows]:
    # Of active students: the purge of one, which has no stamp, ends no membership. And of those whom the export has as
    # students there: a class at another school shares no guardian.
    student = _found(users)
    exported = sa.exists().where(
        user_roles.c.user_id == student.c.sourced_id,
        user_roles.c.org_id == student.c.org_id,
        user_roles.c.role == "student",
        user_roles.c.origin == "export",
    )
    present = (
        sa.select(student.c.grant_id, student.c.sourced_id)
        .distinct()
        .where(student.c.role == "student", exported)
        .where(users.c.sourced_id == student.c.sourced_id, users.c.status == "active")
        .cte("present")
    )
    if numbers := look.group_by(lambda extent: extent.guardians).get(True):
        yield look.select_roles(numbers).where(
            user_roles.c.role.in_(GUARDIAN_ROLES),
            sa.tuple_(GRANTED.c.grant_id, user_roles.c.user_id).in_(_select_agents(present)),
        )


def _select_enrollments(look: _Look) -> Iterable[SelectedRows]:
    found = _found(users)
    person = sa.select(found.c.grant_id, found.c.sourced_id).distinct().where(found.c.role.not_in(GUARDIAN_ROLES))
    # Joined, because the planner takes `IN` for a condition that leaves one row of a grant.
    shared, present = _found(classes), person.subquery()
    yield look.select(enrollments, shared.c.grant_id).where(
        enrollments.c.class_id == shared.c.sourced_id,
        GRANTED.c.grant_id == shared.c.grant_id,
        GRANTED.c.org_id == enrollments.c.school_id,
        present.c.grant_id == shared.c.grant_id,
        present.c.sourced_id == enrollments.c.user_id,
    )


# Each may read what those before it have found.
_OPENED: tuple[Callable[[_Look], Iterable[SelectedRows]], ...] = (
    _select_classes,
    _select_courses,
    _select_students,
    _select_staff,
    _select_guardians,
)


def _found(table: sa.Table) -> sa.Subquery:
    """The records of a table that the stages before have found."""
    columns = (WANTED.c.grant_id, WANTED.c.sourced_id, WANTED.c.org_id, WANTED.c.role)
    return sa.select(*columns).where(WANTED.c.type == table.name).subquery()


def _select_enrolled(look: _Look, numbers: Collection[int], role: str) -> sa.Subquery:
    """The users with an active enrollment of a role in a class that was found, at an org that is granted, with the
    school of the class."""
    shared = _found(classes)
    columns = (shared.c.grant_id, enrollments.c.user_id, classes.c.school_id.label("class_school_id"))
    return (
        sa.select(*columns)
        .where(
            shared.c.grant_id.in_(numbers),
            enrollments.c.class_id == shared.c.sourced_id,
            look.among(users, enrollments.c.user_id),
            enrollments.c.role == role,
            enrollments.c.status == "active",
            GRANTED.c.grant_id == shared.c.grant_id,
            GRANTED.c.org_id == enrollments.c.school_id,
            classes.c.sourced_id == shared.c.sourced_id,
        )
        .subquery()
    )


def _select_agents(people: sa.FromClause) -> sa.CompoundSelect[Any]:
    """Selects the ids of the users whom these users name as agents, or who name them, after the other columns of
    `people`. `people`: has the column `sourced_id`."""
    key, others = people.c.sourced_id, [column for column in people.c if column.name != "sourced_id"]
    named, naming = user_agents.alias(), user_agents.alias()
    return sa.union(
        sa.select(*others, named.c.agent_id).where(named.c.user_id == key),
        sa.select(*others, naming.c.user_id).where(naming.c.agent_id == key),
    )


# --- the records that may come into a group or leave it -------------------------------------------------------------


def _select_candidates(table: sa.Table) -> sa.Select[str]:
    return sa.select(CANDIDATES.c.sourced_id).where(CANDIDATES.c.type == table.name, CANDIDATES.c.context == "")


def is_candidate(type_: sa.ColumnElement[str], sourced_id: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
    """The condition that a record may have come into a group or left it."""
    return sa.exists().where(
        CANDIDATES.c.type == type_, CANDIDATES.c.sourced_id == sourced_id, CANDIDATES.c.context == ""
    )


def note_candidates(connection: sa.Connection, changed: Mapping[sa.Table, SelectedRows]) -> bool:
    """Notes the records that a transaction changes, and those whose membership may follow from them, as the tables are
    now: for `find_members`. `changed`: selects of the ids of users, classes, courses and enrollments. Returns whether
    it has noted them: where no grant has rules, it does nothing.

    Call it before the change, with all that it changes, and after it, with what it has stamped: what hangs on a record
    hangs on it by its earlier or its new references, and a rule may ask those, as `agents.sourcedId` does."""
    if not connection.scalar(sa.select(sa.exists().where(vendor_grants.c.staff.is_not(None)))):
        return False
    if connection.scalar(sa.select(sa.func.to_regclass(f"pg_temp.{CANDIDATES.name}"))) is None:
        make_temporary(connection, CANDIDATES)
        connection.exec_driver_sql(f"CREATE INDEX ON pg_temp.{CANDIDATES.name} (type, sourced_id)")
    for table, ids in changed.items():
        _add(connection, table, ids)
    of = {table: _select_candidates(table) for table in MEMBERS}
    enrolled = sa.select(enrollments.c.user_id)
    _add(
        connection,
        users,
        sa.union(
            enrolled.where(enrollments.c.sourced_id.in_(of[enrollments])),
            enrolled.where(enrollments.c.class_id.in_(of[classes])),
        ),
    )
    _add(connection, courses, sa.select(classes.c.course_id).where(classes.c.sourced_id.in_(of[classes])))
    _add(connection, users, _select_agents(of[users].subquery()))
    own = sa.select(enrollments.c.sourced_id)
    _add(
        connection,
        enrollments,
        sa.union(own.where(enrollments.c.class_id.in_(of[classes])), own.where(enrollments.c.user_id.in_(of[users]))),
    )
    # A guardian stays by another student, a student and a course by another class.
    _add(connection, users, _select_agents(of[users].subquery()), _CONTEXT)
    taken = sa.select(enrollments.c.class_id).where(enrollments.c.user_id.in_(of[users]))
    offered = sa.select(classes.c.sourced_id).where(classes.c.course_id.in_(of[courses]))
    _add(connection, classes, sa.union(taken, offered), _CONTEXT)
    return True


def note_stamped(connection: sa.Connection, feed_ids: Collection[int], stamp: datetime) -> None:
    """Notes the records of these feeds that have a stamp, as `note_candidates`."""
    note_candidates(
        connection,
        {
            table: sa.select(table.c.sourced_id).where(
                table.c.feed_id.in_(feed_ids), table.c.date_last_modified == sa.literal(stamp, Stamp)
            )
            for table in MEMBERS
        },
    )


def _add(connection: sa.Connection, table: sa.Table, ids: SelectedRows, context: str = "") -> None:
    found = ids.subquery()
    kind, key = sa.literal(table.name, CText), found.c[0]
    known = sa.exists().where(CANDIDATES.c.type == kind, CANDIDATES.c.sourced_id == key)
    if not context:
        known = known.where(CANDIDATES.c.context == "")
    rows = sa.select(kind, key, sa.literal(context, CText)).distinct().where(~known)
    connection.execute(CANDIDATES.insert().from_select([column.name for column in CANDIDATES.c], rows))
    analyze(connection, CANDIDATES)
