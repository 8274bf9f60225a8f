"""Who may see which row: the one place where it is written.

A caller's grants are two lists, whole districts and single schools, bound to every statement as `caller_districts`
and `caller_schools`. A row is visible through an org:

- an org, if it lies in a granted district, is a granted school, or is the district of a granted school;
- a course, if its org is visible, or one of its classes is;
- a class, if its school is granted;
- a role of a user, if its org is granted, and guardians' roles only with the right to see guardians;
- a user, if one of their roles is visible; their demographics likewise;
- an enrollment, if its school is granted, and its class and its user are visible;
- an academic session, if its feed brings a visible org: calendars have no org of their own in OneRoster;
- a document, the text of a record that is kept, if all orgs that it needs are granted (roster_service/db/needs.py).

Empty lists see nothing. The conditions stand below whatever a caller filters or sorts by.

PostgreSQL holds the role that serves requests to the same rules by itself, with the policies of row-level security in
`db/sql/policies`: `open_roster` tells it the caller's grants, for one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from sqlalchemy import (
    BindParameter,
    Boolean,
    ColumnElement,
    Connection,
    FromClause,
    Select,
    Table,
    any_,
    bindparam,
    case,
    exists,
    func,
    literal_column,
    or_,
    select,
    text,
)

from roster_service.db import tables
from roster_service.db.document_tables import documents
from roster_service.db.tables import CTexts
from roster_service.db.vocabulary import GUARDIAN_ROLES


class MetadataOf(Enum):
    """The kinds of record whose `metadata` has a scope of its own; no other record shows any."""

    ORGS = "orgs"
    STUDENTS = "students"
    GUARDIANS = "guardians"
    DEMOGRAPHICS = "demographics"


@dataclass(frozen=True)
class Sight:
    """The part of a caller's rights that shapes a statement; the lists of districts and schools are bound to it."""

    guardians: bool
    metadata: frozenset[MetadataOf]


_SET_SIGHT = text("SELECT set_sight(:districts, :schools, :guardians)").bindparams(
    bindparam("districts", type_=CTexts), bindparam("schools", type_=CTexts)
)


def open_roster(connection: Connection, districts: Sequence[str], schools: Sequence[str], sight: Sight) -> str:
    """Lets the rest of the transaction read the rows of these districts and schools; without it there are none.

    Returns a hash of what it may read.
    """
    grants = {"districts": list(districts), "schools": list(schools), "guardians": sight.guardians}
    return str(connection.execute(_SET_SIGHT, grants).scalar_one())


_KEEP_SIGHT = text("SELECT keep_sight(:districts, :schools)").bindparams(
    bindparam("districts", type_=CTexts), bindparam("schools", type_=CTexts)
)


def keep_sight(connection: Connection, districts: Sequence[str], schools: Sequence[str]) -> None:
    """Has the database keep which orgs these grants open, until the roster changes: `open_roster` then looks it up.

    `connection` may write; the database works it out by itself.
    """
    connection.execute(_KEEP_SIGHT, {"districts": list(districts), "schools": list(schools)})


@dataclass(frozen=True)
class Opening:
    """What one transaction may read, as row-level security was told."""

    granted_districts: str
    granted_schools: str
    districts_above: str
    granted_orgs: str
    shown_orgs: str
    guardians: str
    everyone: str


_READ_OPENING = text(
    "SELECT coalesce(nullif(current_setting('roster.granted_districts', true), ''), '{}'), "
    "coalesce(nullif(current_setting('roster.granted_schools', true), ''), '{}'), "
    "coalesce(nullif(current_setting('roster.districts_above', true), ''), '{}'), "
    "coalesce(nullif(current_setting('roster.granted_orgs', true), ''), '{}'), "
    "coalesce(nullif(current_setting('roster.shown_orgs', true), ''), '{}'), "
    "coalesce(nullif(current_setting('roster.guardians', true), ''), 'false'), "
    "coalesce(nullif(current_setting('roster.everyone', true), ''), 'false')"
)
_REPEAT_OPENING = text(
    "SELECT set_config('roster.granted_districts', :granted_districts, true), "
    "set_config('roster.granted_schools', :granted_schools, true), "
    "set_config('roster.districts_above', :districts_above, true), "
    "set_config('roster.granted_orgs', :granted_orgs, true), "
    "set_config('roster.shown_orgs', :shown_orgs, true), set_config('roster.guardians', :guardians, true), "
    "set_config('roster.everyone', :everyone, true)"
)


def read_opening(connection: Connection) -> Opening:
    """What this transaction may read."""
    return Opening(*connection.execute(_READ_OPENING).one())


def repeat_opening(connection: Connection, opening: Opening) -> None:
    """Lets the rest of this transaction read what another one may, and nothing more."""
    connection.execute(_REPEAT_OPENING, vars(opening))


def has_row(row: FromClause, *conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """Whether `row`, an alias of its own, has a row where the conditions hold.

    Every other table that the conditions name is the enclosing query's, however deep this one stands: SQLAlchemy by
    itself would look one level up only, and join the table a second time, with all its rows.
    """
    return exists(select(literal_column("1")).select_from(row).where(*conditions).correlate_except(row))


def of_each_row(condition: ColumnElement[bool]) -> ColumnElement[bool]:
    """The same condition, which PostgreSQL evaluates for each row that the other conditions leave.

    PostgreSQL takes a bare EXISTS for a join, and may begin with everything that is visible to find the rows of one
    class. It cannot look into a CASE, so the other conditions drive the plan.
    """
    return case((condition, 1), else_=0) != 0


def caller_districts() -> BindParameter[Any]:
    """The bound list of the districts that the caller may see whole."""
    return bindparam("caller_districts", type_=CTexts)


def caller_schools() -> BindParameter[Any]:
    """The bound list of the schools that the caller may see alone."""
    return bindparam("caller_schools", type_=CTexts)


def granted_orgs() -> Select[str]:
    """The ids of the orgs whose people, classes and enrollments are visible."""
    org = tables.orgs.alias()
    return select(org.c.sourced_id).where(_is_granted(org))


def org_is_shown(org: FromClause) -> ColumnElement[bool]:
    """Whether a row of orgs is itself visible: granted, or the district above a granted school."""
    school = tables.orgs.alias()
    districts = select(school.c.district_id).where(school.c.sourced_id == any_(caller_schools()))
    return or_(
        org.c.district_id == any_(caller_districts()),
        org.c.sourced_id == any_(caller_schools()),
        org.c.sourced_id.in_(districts),
    )


def org_id_is_shown(org_id: ColumnElement[str]) -> ColumnElement[bool]:
    """Whether the org with this id is visible."""
    org = tables.orgs.alias()
    return has_row(org, org.c.sourced_id == org_id, org_is_shown(org))


def org_id_is_granted(org_id: ColumnElement[str]) -> ColumnElement[bool]:
    """Whether the people, classes and enrollments of the org with this id are visible.

    Written as EXISTS: PostgreSQL then looks up the orgs of a few rows, and makes a list of all granted orgs for many.
    """
    org = tables.orgs.alias()
    return has_row(org, org.c.sourced_id == org_id, _is_granted(org))


def _is_granted(org: FromClause) -> ColumnElement[bool]:
    return or_(org.c.district_id == any_(caller_districts()), org.c.sourced_id == any_(caller_schools()))


def every_org_is_granted() -> ColumnElement[bool]:
    """Whether there is no org but those that are granted: asked once a statement, of a function that row-level security
    hides no org from."""
    asked = func.grants_every_org(caller_districts(), caller_schools(), type_=Boolean)
    return select(asked).scalar_subquery()


def role_is_visible(role: FromClause, sight: Sight) -> ColumnElement[bool]:
    """Whether a row of user_roles is visible."""
    granted = org_id_is_granted(role.c.org_id)
    return granted if sight.guardians else granted & role.c.role.not_in(GUARDIAN_ROLES)


def user_is_visible(user_id: ColumnElement[str], sight: Sight, *roles: str) -> ColumnElement[bool]:
    """Whether the user with this id is visible; with `roles`, whether through one of these."""
    role = tables.user_roles.alias()
    conditions = [role.c.user_id == user_id, role_is_visible(role, sight)]
    if roles:
        conditions.append(role.c.role.in_(roles))
    return has_row(role, *conditions)


def _course_is_visible(course: FromClause, sight: Sight) -> ColumnElement[bool]:
    taught = tables.classes.alias()
    return or_(
        org_id_is_shown(course.c.org_id),
        has_row(taught, taught.c.course_id == course.c.sourced_id, _class_is_visible(taught, sight)),
    )


def _class_is_visible(taught: FromClause, _sight: Sight) -> ColumnElement[bool]:
    return org_id_is_granted(taught.c.school_id)


def _enrollment_is_visible(enrollment: FromClause, sight: Sight) -> ColumnElement[bool]:
    taught = tables.classes.alias()
    return (
        org_id_is_granted(enrollment.c.school_id)
        & has_row(taught, taught.c.sourced_id == enrollment.c.class_id, _class_is_visible(taught, sight))
        & user_is_visible(enrollment.c.user_id, sight)
    )


def _session_is_visible(session: FromClause, _sight: Sight) -> ColumnElement[bool]:
    org = tables.orgs.alias()
    return session.c.feed_id.in_(select(org.c.feed_id).where(org_is_shown(org)))


def session_id_is_visible(session_id: ColumnElement[str], sight: Sight) -> ColumnElement[bool]:
    """Whether the academic session with this id is visible."""
    session = tables.academic_sessions.alias()
    return session_id.in_(select(session.c.sourced_id).where(row_is_visible(tables.academic_sessions, session, sight)))


def document_is_visible(sight: Sight) -> ColumnElement[bool]:
    """Whether a row of documents is what the caller would get of its record."""
    granted = or_(
        # Says for most callers in one comparison what the list would.
        documents.c.district_id == any_(caller_districts()),
        documents.c.needs.contained_by(func.array(granted_orgs().scalar_subquery(), type_=CTexts)),
    )
    return granted if sight.guardians else granted & ~documents.c.needs_guardians


def document_is_visible_by_district(document: FromClause, sight: Sight) -> ColumnElement[bool]:
    """The same of `document`, of a document that needs no more than a whole district; false for others."""
    granted = document.c.district_id == any_(caller_districts())
    return granted if sight.guardians else granted & ~document.c.needs_guardians


_VISIBLE: Mapping[Table, Callable[[FromClause, Sight], ColumnElement[bool]]] = {
    tables.orgs: lambda org, _sight: org_is_shown(org),
    tables.academic_sessions: _session_is_visible,
    tables.courses: _course_is_visible,
    tables.classes: _class_is_visible,
    tables.users: lambda user, sight: user_is_visible(user.c.sourced_id, sight),
    tables.enrollments: _enrollment_is_visible,
    tables.demographics: lambda record, sight: user_is_visible(record.c.sourced_id, sight),
}


def row_is_visible(table: Table, row: FromClause, sight: Sight) -> ColumnElement[bool]:
    """The condition that `row`, the table or an alias of it, is visible. KeyError for a table that has none."""
    return _VISIBLE[table](row, sight)


def user_metadata_is_visible(sight: Sight) -> ColumnElement[bool] | None:
    """The condition that a user's metadata is visible; None where the caller sees no user's metadata at all."""
    roles: tuple[str, ...] = ()
    if MetadataOf.STUDENTS in sight.metadata:
        roles += ("student",)
    if MetadataOf.GUARDIANS in sight.metadata:
        roles += GUARDIAN_ROLES
    return user_is_visible(tables.users.c.sourced_id, sight, *roles) if roles else None
