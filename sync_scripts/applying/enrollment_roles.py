"""The roles that follow from enrollments: they open a user to those who may see the school of an enrollment.

The interfaces do not show such a role. Its word is a word that the export has for the user, so a path such as
`/teachers` lists a user by the roles of the export alone.
"""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa
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
    connection: sa.Connection, roles: sa.Table, staged: Staged, retention: Retention, owners: sa.Table | None
) -> None:
    """Adds the roles that follow from enrollments to `roles`, the table of the desired roles. A user with an enrollment
    in a class belongs to its school, even if the export gives the user no role there. A guardian's role there does not
    count.

    The role at the school is the role in the class, if the export gives it to the user at any org; else the first role
    of the user; for a user without a role it is the role in the class. `owners`: the ids of the users whose roles may
    differ; None: all.
    """
    missing = _select_missing_roles(connection, roles, staged, retention, owners)
    known = (
        sa.select(roles.c.user_id, sa.func.max(roles.c.ordinal).label("last"))
        .group_by(roles.c.user_id)
        .subquery("known")
    )
    number = sa.func.row_number().over(partition_by=missing.c.user_id, order_by=(missing.c.org_id, missing.c.role))
    turn = sa.func.row_number().over(partition_by=(missing.c.user_id, missing.c.org_id), order_by=missing.c.role)
    there = sa.select(roles.c.user_id, roles.c.org_id).distinct().subquery("there")
    same = sa.and_(there.c.user_id == missing.c.user_id, there.c.org_id == missing.c.org_id)
    first_there = sa.and_(turn == 1, there.c.user_id.is_(None))
    rows = sa.select(
        missing.c.user_id,
        (sa.func.coalesce(known.c.last, 0) + number).label("ordinal"),
        missing.c.org_id,
        missing.c.role,
        sa.case((first_there, "primary"), else_="secondary").label("role_type"),
        sa.literal("enrollment", CText).label("origin"),
    ).select_from(missing.outerjoin(known, known.c.user_id == missing.c.user_id).outerjoin(there, same))
    insert_rows(connection, roles, rows)


def _select_missing_roles(
    connection: sa.Connection, roles: sa.Table, staged: Staged, retention: Retention, owners: sa.Table | None
) -> sa.Subquery:
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
        at_its_school = sa.and_(have.c.user_id == every.c.user_id, have.c.org_id == every.c.school_id, is_belonging)
        seen = every.outerjoin(have, at_its_school).outerjoin(classes, classes.c.sourced_id == every.c.class_id)
        found = sa.select(*every.c).select_from(seen)
        found = found.where(sa.or_(have.c.user_id.is_(None), classes.c.school_id != every.c.school_id))
    # The planner would not guess how few they are, so put them into an analyzed table.
    columns = [sa.Column(name, CText) for name in ("sourced_id", *names)]
    enrollments = create_temporary(connection, "enrollments_of_owners", columns)
    insert_rows(connection, enrollments, found)
    analyze_temporary(connection, enrollments)
    role = sa.case(
        *(
            (enrollments.c.role == word, sa.literal(at_school, CText))
            for word, at_school in ROLES_OF_ENROLLMENTS.items()
        ),
        else_=enrollments.c.role,
    ).label("role")

    def lacks(org_id: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
        return ~sa.exists().where(have.c.user_id == enrollments.c.user_id, have.c.org_id == org_id, is_belonging)

    # Hardly any enrollment is left after these conditions, so the UNION of equal rows costs nothing.
    of_enrollment = sa.select(enrollments.c.user_id, enrollments.c.school_id.label("org_id"), role).where(
        lacks(enrollments.c.school_id)
    )
    of_class = sa.select(enrollments.c.user_id, classes.c.school_id, role).where(
        classes.c.sourced_id == enrollments.c.class_id,
        classes.c.school_id != enrollments.c.school_id,
        lacks(classes.c.school_id),
    )
    return _replace_words(sa.union(of_enrollment, of_class).subquery("enrolled"), roles)


def _replace_words(enrolled: sa.Subquery, roles: sa.Table) -> sa.Subquery:
    """(user, org, role) of `enrolled`, each role replaced by a word that the export has for the user."""
    is_belonging = roles.c.role.not_in(GUARDIAN_ROLES)
    words = sa.select(roles.c.user_id, roles.c.role).where(is_belonging).distinct().subquery("words")
    first = (
        sa.select(roles.c.user_id, roles.c.role)
        .ext(distinct_on(roles.c.user_id))
        .where(is_belonging)
        .order_by(roles.c.user_id, roles.c.ordinal)
        .subquery("first_words")
    )
    same = sa.and_(words.c.user_id == enrolled.c.user_id, words.c.role == enrolled.c.role)
    word = sa.func.coalesce(words.c.role, first.c.role, enrolled.c.role, type_=CText).label("role")
    both = enrolled.outerjoin(words, same).outerjoin(first, first.c.user_id == enrolled.c.user_id)
    return sa.select(enrolled.c.user_id, enrolled.c.org_id, word).select_from(both).distinct().subquery("missing")
