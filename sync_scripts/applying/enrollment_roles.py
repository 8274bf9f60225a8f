"""The roles of users that follow from their enrollments."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Subquery,
    Table,
    and_,
    case,
    exists,
    func,
    literal,
    or_,
    select,
    union,
)

from roster_service.db import tables
from roster_service.db.tables import CText
from roster_service.db.vocabulary import GUARDIAN_ROLES
from sync_scripts.applying.current_records import select_current
from sync_scripts.formats.model import Staged
from sync_scripts.staging.retained import Retention
from sync_scripts.staging.temporary import analyze_temporary, create_temporary, insert_rows

# The role at a school that follows from a role in one of its classes. Any other role is the same at the school.
ROLES_OF_ENROLLMENTS: Mapping[str, str] = {"administrator": "siteAdministrator", "ext:aide": "aide"}


def add_enrollment_roles(
    connection: Connection, roles: Table, staged: Staged, retention: Retention, owners: Table | None
) -> None:
    """Adds the roles that follow from enrollments to `roles`, the table of the desired roles. A user with an enrollment
    in a class belongs to its school, even if the export gives the user no role there. A guardian's role there does not
    count. `owners`: the ids of the users whose roles may differ; None: all."""
    missing = _select_missing_roles(connection, roles, staged, retention, owners)
    known = select(roles.c.user_id, func.max(roles.c.ordinal).label("last")).group_by(roles.c.user_id).subquery("known")
    number = func.row_number().over(partition_by=missing.c.user_id, order_by=(missing.c.org_id, missing.c.role))
    turn = func.row_number().over(partition_by=(missing.c.user_id, missing.c.org_id), order_by=missing.c.role)
    there = select(roles.c.user_id, roles.c.org_id).distinct().subquery("there")
    same = and_(there.c.user_id == missing.c.user_id, there.c.org_id == missing.c.org_id)
    first_there = and_(turn == 1, there.c.user_id.is_(None))
    rows = select(
        missing.c.user_id,
        (func.coalesce(known.c.last, 0) + number).label("ordinal"),
        missing.c.org_id,
        missing.c.role,
        case((first_there, "primary"), else_="secondary").label("role_type"),
        literal("enrollment", CText).label("origin"),
    ).select_from(missing.outerjoin(known, known.c.user_id == missing.c.user_id).outerjoin(there, same))
    insert_rows(connection, roles, rows)


def _select_missing_roles(
    connection: Connection, roles: Table, staged: Staged, retention: Retention, owners: Table | None
) -> Subquery:
    """(user, org, role) for enrollments whose user has no role, or only a guardian's, at the school of the enrollment
    or at the school of its class."""
    names = ("user_id", "class_id", "school_id", "role")
    only = None if owners is None else ("user_id", owners)
    found = select_current(tables.enrollments, staged, retention, *names, only=only)
    classes = select_current(tables.classes, staged, retention, "school_id").subquery()
    have = roles.alias()
    is_belonging = have.c.role.not_in(GUARDIAN_ROLES)
    if owners is None:
        # This pass keeps few enrollments: those without a role at their school, or in a class of another school.
        analyze_temporary(connection, roles, have.c.user_id.name, have.c.org_id.name)
        every = found.subquery()
        at_its_school = and_(have.c.user_id == every.c.user_id, have.c.org_id == every.c.school_id, is_belonging)
        seen = every.outerjoin(have, at_its_school).outerjoin(classes, classes.c.sourced_id == every.c.class_id)
        found = select(*every.c).select_from(seen)
        found = found.where(or_(have.c.user_id.is_(None), classes.c.school_id != every.c.school_id))
    # The planner would not guess how few they are, so put them into an analyzed table.
    columns = [Column(name, CText) for name in ("sourced_id", *names)]
    enrollments = create_temporary(connection, "enrollments_of_owners", columns)
    insert_rows(connection, enrollments, found)
    analyze_temporary(connection, enrollments)
    role = case(
        *((enrollments.c.role == word, literal(at_school, CText)) for word, at_school in ROLES_OF_ENROLLMENTS.items()),
        else_=enrollments.c.role,
    ).label("role")

    def lacks(org_id: ColumnElement[str]) -> ColumnElement[bool]:
        return ~exists().where(have.c.user_id == enrollments.c.user_id, have.c.org_id == org_id, is_belonging)

    # Hardly any enrollment is left after these conditions, so the UNION of equal rows costs nothing.
    of_enrollment = select(enrollments.c.user_id, enrollments.c.school_id.label("org_id"), role).where(
        lacks(enrollments.c.school_id)
    )
    of_class = select(enrollments.c.user_id, classes.c.school_id, role).where(
        classes.c.sourced_id == enrollments.c.class_id,
        classes.c.school_id != enrollments.c.school_id,
        lacks(classes.c.school_id),
    )
    return union(of_enrollment, of_class).subquery("missing")
