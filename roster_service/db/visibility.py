"""The query filter: the first of the two layers that decide which rows a vendor sees.

`visible_orgs` says, as rows, which orgs each vendor's grants open; every statement is bound to its vendor as
`vendor_id`. A row is visible through an org:

- an org, if it lies in a granted district, is a granted school, or is the district of a granted school;
- a course, if its org is visible, or one of its classes is;
- a class, if its school is granted;
- a role of a user, if its org is granted, and guardians' roles only with the right to see guardians;
- a user, if one of their roles is visible; their demographics likewise;
- an enrollment, if its school is granted, and its class and its user are visible;
- an academic session, if its feed brings a visible org: calendars have no org of their own in OneRoster;
- a rendered record, if all orgs that it requires are granted (roster_service/cache/required_orgs.py).

A vendor without rows sees nothing. The conditions stand below whatever a caller filters or sorts by.

The second layer is row-level security, in texts of its own (roster_service/db/sql/policies): it goes by the key that
the admission of a request has set for the transaction, not by `vendor_id`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    FromClause,
    Integer,
    Select,
    Table,
    bindparam,
    case,
    exists,
    func,
    literal_column,
    or_,
    select,
)

from roster_service.db import tables
from roster_service.db.tables import CText, CTexts, rendered_records, visible_orgs
from roster_service.db.vocabulary import GUARDIAN_ROLES


class MetadataOf(Enum):
    """The kinds of record whose `metadata` has a scope of its own; no other record shows any."""

    ORGS = "orgs"
    STUDENTS = "students"
    GUARDIANS = "guardians"
    DEMOGRAPHICS = "demographics"


@dataclass(frozen=True)
class ContentRights:
    """The content rights of a caller: the part of their rights that shapes a statement; the vendor is bound to it."""

    guardians: bool
    metadata: frozenset[MetadataOf]


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


# What renders records for all vendors is bound to this one: the sync keeps rows for it that open every org. No vendor
# has this id, and no admission gives its key.
RENDERER = 0

VENDOR: BindParameter[int] = bindparam("vendor_id", type_=Integer)


def select_granted_orgs() -> Select[str]:
    """The ids of the orgs whose people, classes and enrollments are visible."""
    return _select_visible(lambda visible: visible.granted)


def select_whole_districts() -> Select[str]:
    """The ids of the districts that are granted with all their orgs."""
    return _select_visible(lambda visible: visible.whole_district)


def _select_visible(condition: Callable[[Any], ColumnElement[bool]]) -> Select[str]:
    visible = visible_orgs.alias()
    return select(visible.c.org_id).where(visible.c.vendor_id == VENDOR, condition(visible.c))


def read_visible_set() -> ColumnElement[str]:
    """The hash of what the admitted caller sees; NULL where nobody was admitted in this transaction."""
    return func.nullif(func.current_setting("roster.visible_set", True), "", type_=CText)


def org_is_visible(org: FromClause) -> ColumnElement[bool]:
    """Whether a row of orgs is itself visible: granted, or the district above a granted school."""
    return org_id_is_visible(org.c.sourced_id)


def org_id_is_visible(org_id: ColumnElement[str]) -> ColumnElement[bool]:
    """Whether the org with this id is visible."""
    visible = visible_orgs.alias()
    return has_row(visible, visible.c.vendor_id == VENDOR, visible.c.org_id == org_id)


def org_id_is_granted(org_id: ColumnElement[str]) -> ColumnElement[bool]:
    """Whether the people, classes and enrollments of the org with this id are visible.

    Written as EXISTS: PostgreSQL then looks up the orgs of a few rows, and makes a list of all granted orgs for many.
    """
    visible = visible_orgs.alias()
    return has_row(visible, visible.c.vendor_id == VENDOR, visible.c.org_id == org_id, visible.c.granted)


def role_is_visible(role: FromClause, rights: ContentRights) -> ColumnElement[bool]:
    """Whether a row of user_roles is visible."""
    granted = org_id_is_granted(role.c.org_id)
    return granted if rights.guardians else granted & role.c.role.not_in(GUARDIAN_ROLES)


def user_is_visible(user_id: ColumnElement[str], rights: ContentRights, *roles: str) -> ColumnElement[bool]:
    """Whether the user with this id is visible; with `roles`, whether through one of these."""
    role = tables.user_roles.alias()
    conditions = [role.c.user_id == user_id, role_is_visible(role, rights)]
    if roles:
        conditions.append(role.c.role.in_(roles))
    return has_row(role, *conditions)


def _course_is_visible(course: FromClause, rights: ContentRights) -> ColumnElement[bool]:
    taught = tables.classes.alias()
    return or_(
        org_id_is_visible(course.c.org_id),
        has_row(taught, taught.c.course_id == course.c.sourced_id, _class_is_visible(taught, rights)),
    )


def _class_is_visible(taught: FromClause, _rights: ContentRights) -> ColumnElement[bool]:
    return org_id_is_granted(taught.c.school_id)


def _enrollment_is_visible(enrollment: FromClause, rights: ContentRights) -> ColumnElement[bool]:
    taught = tables.classes.alias()
    # The school says which enrollments are few. Of three joins PostgreSQL guesses the number of rows far too low, and
    # pairs every class with every org.
    return org_id_is_granted(enrollment.c.school_id) & of_each_row(
        has_row(taught, taught.c.sourced_id == enrollment.c.class_id, _class_is_visible(taught, rights))
        & user_is_visible(enrollment.c.user_id, rights)
    )


def _session_is_visible(session: FromClause, _rights: ContentRights) -> ColumnElement[bool]:
    visible = visible_orgs.alias()
    return has_row(visible, visible.c.vendor_id == VENDOR, visible.c.feed_id == session.c.feed_id)


def session_id_is_visible(session_id: ColumnElement[str], rights: ContentRights) -> ColumnElement[bool]:
    """Whether the academic session with this id is visible."""
    session = tables.academic_sessions.alias()
    return session_id.in_(select(session.c.sourced_id).where(row_is_visible(tables.academic_sessions, session, rights)))


def rendered_record_is_visible(rights: ContentRights) -> ColumnElement[bool]:
    """Whether a rendered record is what the caller would get of its record."""
    granted = or_(
        # Says for most callers in one comparison what the list would.
        rendered_records.c.district_id.in_(select_whole_districts()),
        rendered_records.c.required_orgs.contained_by(
            func.array(select_granted_orgs().scalar_subquery(), type_=CTexts)
        ),
    )
    return granted if rights.guardians else granted & ~rendered_records.c.requires_guardians


_VISIBLE: Mapping[Table, Callable[[FromClause, ContentRights], ColumnElement[bool]]] = {
    tables.orgs: lambda org, _rights: org_is_visible(org),
    tables.academic_sessions: _session_is_visible,
    tables.courses: _course_is_visible,
    tables.classes: _class_is_visible,
    tables.users: lambda user, rights: user_is_visible(user.c.sourced_id, rights),
    tables.enrollments: _enrollment_is_visible,
    tables.demographics: lambda record, rights: user_is_visible(record.c.sourced_id, rights),
}


def row_is_visible(table: Table, row: FromClause, rights: ContentRights) -> ColumnElement[bool]:
    """The condition that `row`, the table or an alias of it, is visible. KeyError for a table that has none."""
    return _VISIBLE[table](row, rights)


def user_metadata_is_visible(rights: ContentRights) -> ColumnElement[bool] | None:
    """The condition that a user's metadata is visible; None where the caller sees no user's metadata at all."""
    roles: tuple[str, ...] = ()
    if MetadataOf.STUDENTS in rights.metadata:
        roles += ("student",)
    if MetadataOf.GUARDIANS in rights.metadata:
        roles += GUARDIAN_ROLES
    return user_is_visible(tables.users.c.sourced_id, rights, *roles) if roles else None
