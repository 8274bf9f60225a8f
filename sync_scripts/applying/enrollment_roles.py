"""The roles that follow from enrollments: they open a user to those who may see the school of an enrollment.

The interfaces do not show such a role. Its word is a word that the export has for the user, so a path such as
`/teachers` lists a user by the roles of the export alone.
"""

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
from sqlalchemy.dialects.postgresql import distinct_on

from roster_service.db import tables
from roster_service.db.tables import CText
from roster_service.roster.vocabulary import GUARDIAN_ROLES
from sync_scripts.applying.current_records import select_current
from sync_scripts.formats.model import Staged
from sync_scripts.staging.retained import Retention
from sync_scripts.staging.temporary import analyze_temporary, create_temporary, insert_rows

# The role at a school that means the same as a role in one of its classes. Any other role has the same word.
ROLES_OF_ENROLLMENTS: Mapping[str, str] = {"administrator": "siteAdministrator", "ext:aide": "aide"}


def add_enrollment_roles(
    connection: Connection, roles: Table, staged: Staged, retention: Retention, owners: Table | None
) -> None:
    """Adds the roles that follow from enrollments to `roles`, the table of the desired roles. A user with an enrollment
    in a class belongs to its school, even if the export gives the user no role there. A guardian's role there does not
    count.

    The role at the school is the role in the class, if the export gives it to the user at any org; else the first role
    of the user; for a user without a role it is the role in the class. `owners`: the ids of the users whose roles may
    differ; None: all.
    """
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
    return _replace_words(union(of_enrollment, of_class).subquery("enrolled"), roles)


def _replace_words(enrolled: Subquery, roles: Table) -> Subquery:
    """(user, org, role) of `enrolled`, each role replaced by a word that the export has for the user."""
    is_belonging = roles.c.role.not_in(GUARDIAN_ROLES)
    words = select(roles.c.user_id, roles.c.role).where(is_belonging).distinct().subquery("words")
    first = (
        select(roles.c.user_id, roles.c.role)
        .ext(distinct_on(roles.c.user_id))
        .where(is_belonging)
        .order_by(roles.c.user_id, roles.c.ordinal)
        .subquery("first_words")
    )
    same = and_(words.c.user_id == enrolled.c.user_id, words.c.role == enrolled.c.role)
    word = func.coalesce(words.c.role, first.c.role, enrolled.c.role, type_=CText).label("role")
    both = enrolled.outerjoin(words, same).outerjoin(first, first.c.user_id == enrolled.c.user_id)
    return select(enrolled.c.user_id, enrolled.c.org_id, word).select_from(both).distinct().subquery("missing")
