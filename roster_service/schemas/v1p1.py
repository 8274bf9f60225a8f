"""The records of OneRoster 1.1: smaller vocabularies, and users with one role and a list of orgs."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from oneroster_filter import Operator
from oneroster_filter.sqlalchemy import FilterValue
from oneroster_filter.typing import TypedClause
from sqlalchemy.sql.base import ReadOnlyColumnCollection
from sqlalchemy.types import NullType

from roster_service.db import tables
from roster_service.db.tables import CTexts
from roster_service.roster import json_text, vocabulary
from roster_service.roster.person_parts import PersonPart
from roster_service.roster.visibility import (
    SEEN_ROLES,
    ContentRights,
    has_row,
    per_row,
    read_joined,
    role_is_visible,
    select_seen_roles,
)
from roster_service.roster.withheld import WithheldField
from roster_service.schemas import kinds, records
from roster_service.schemas.joined_rows import JoinedRows
from roster_service.schemas.version_words import Wording

_role = tables.user_roles.c


def _make_preference_keys(role: ReadOnlyColumnCollection[str, Any]) -> tuple[sa.ColumnElement[Any], ...]:
    """Returns the sort keys that choose the role of 1.1: a role of the export before one that follows from an
    enrollment, then at the primary org, then role type primary, then the first."""
    return (
        (role.origin == "export").desc(),
        (role.org_id == tables.users.c.primary_org_id).desc().nulls_last(),
        role.role_type,
        role.ordinal,
    )


def _find_roles(rights: ContentRights) -> tuple[sa.FromClause, sa.ColumnElement[bool]]:
    """Returns an alias of the roles of the user of a record, and the condition that selects those that the caller sees.
    A statement that joins them has them in an array."""
    if rights.joined:
        return sa.func.unnest(read_joined(SEEN_ROLES, "roles", NullType)).table_valued(*_role.keys()).alias(), sa.true()
    role = tables.user_roles.alias()
    return role, (role.c.user_id == tables.users.c.sourced_id) & role_is_visible(role, rights)


def select_single_role(rights: ContentRights) -> sa.ColumnElement[str]:
    """Returns the user's role in 1.1, which has only one: the preferred role of those that the caller may see."""
    role, is_seen = _find_roles(rights)
    preferred = (
        sa.select(vocabulary.NARROW_USER_ROLE.narrow(role.c.role))
        .where(is_seen)
        .order_by(*_make_preference_keys(role.c))
        .limit(1)
        # The subquery of `orgs` also contains this expression, two levels below `users`.
        .correlate_except(role)
        .scalar_subquery()
    )
    return _take_only_role("word", preferred) if rights.joined else preferred


def _take_only_role(name: str, other: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
    """Returns the aggregate `name` of the seen roles of a user with one role, as nearly all have; else `other`."""
    is_only = read_joined(SEEN_ROLES, "number", sa.Integer) == 1
    return sa.case((is_only, read_joined(SEEN_ROLES, name, sa.Text)), else_=other)


def _shows_role(role: str, rights: ContentRights) -> sa.ColumnElement[bool]:
    """The condition that a user with a visible role `role` shows it as the single role of 1.1."""
    other = tables.user_roles.alias()
    has_other = has_row(
        other, other.c.user_id == tables.users.c.sourced_id, other.c.role != role, role_is_visible(other, rights)
    )
    # Few users have several roles, and for the others the first condition decides.
    return per_row(~has_other | (select_single_role(rights) == role))


WORDING = Wording(vocabulary.NARROW_SESSION_TYPE.narrow, _shows_role)


class Org(records.OrgRecord):
    """An org of 1.1."""

    type = kinds.Token(tables.orgs.c.type, vocabulary.NARROW_ORG_TYPE, "The kind of org", required=True)
    identifier = kinds.Text(tables.orgs.c.identifier, "The number of the org at the state or district")


class AcademicSession(records.AcademicSessionRecord):
    """An academic session of 1.1."""

    wording = WORDING
    type = kinds.Token(
        tables.academic_sessions.c.type, vocabulary.NARROW_SESSION_TYPE, "The kind of session", required=True
    )


class Course(records.CourseRecord):
    """A course of 1.1."""

    courseCode = kinds.Text(tables.courses.c.course_code, "The code by which people know the course")


class Class(records.ClassRecord):
    """A class of 1.1."""

    wording = WORDING
    classType = kinds.Token(tables.classes.c.class_type, vocabulary.NARROW_CLASS_TYPE, "The kind of class")


def _is_in_orgs(rights: ContentRights) -> sa.ColumnElement[bool]:
    """The roles that 1.1 maps to the same word as the user's single role, one for each org.

    In 1.1, `orgs` are the orgs at which the user has `role`.
    """
    other = tables.user_roles.alias()
    has_other = has_row(other, other.c.user_id == _role.user_id, other.c.ordinal != _role.ordinal)
    return (
        (_role.user_id == tables.users.c.sourced_id)
        & role_is_visible(tables.user_roles, rights)
        # Few users have several roles, and the only one is the single one: PostgreSQL then looks no further.
        & per_row(~has_other | _is_first_of_word(_role, rights))
    )


def _is_first_of_word(role: ReadOnlyColumnCollection[str, Any], rights: ContentRights) -> sa.ColumnElement[bool]:
    """The condition that a role of a user with several has the word of the single role, and is the first at its org
    that has it."""
    twin, is_seen = _find_roles(rights)
    has_earlier_twin = has_row(
        twin,
        is_seen,
        twin.c.org_id == role.org_id,
        twin.c.ordinal < role.ordinal,
        vocabulary.NARROW_USER_ROLE.narrow(twin.c.role) == vocabulary.NARROW_USER_ROLE.narrow(role.role),
    )
    return (vocabulary.NARROW_USER_ROLE.narrow(role.role) == select_single_role(rights)) & ~has_earlier_twin


class _Orgs(kinds.RefList):
    """The orgs of a user of 1.1. The statement has joined the roles."""

    def json(self, rights: ContentRights) -> sa.ColumnElement[str]:
        role, is_seen = _find_roles(rights)
        rows = kinds.ChildRows(
            lambda _rights: is_seen & _is_first_of_word(role.c, rights), _make_preference_keys(role.c)
        )
        return _take_only_role("orgs", kinds.RefList(self.kind, role.c.org_id, rows, "", required=True).json(rights))


def _select_roles(rights: ContentRights) -> sa.Select[Any]:
    word = vocabulary.NARROW_USER_ROLE.narrow(_role.role)
    # Of one role, the largest value is the only one, and needs no order.
    org = sa.func.max(kinds.find_list(User, "orgs").item_json(rights), type_=sa.Text)
    rows: sa.ColumnElement[Any] = sa.func.array_agg(sa.literal_column(tables.user_roles.name, NullType))
    return select_seen_roles(rights, {"word": sa.func.max(word), "orgs": json_text.list_json(org), "roles": rows})


class _SingleRole(kinds.Token):
    """The single role of a user of 1.1."""

    def preselect(self, clause: TypedClause, _rights: ContentRights) -> sa.ColumnElement[bool] | None:
        """The users with a role that may be shown as this word. To find the single role of each of 40,000 users makes
        a first page of teachers, or of aides, take six times as long."""
        if clause.operator is not Operator.EQUAL or not isinstance(clause.value, str):
            return None
        others = FilterValue(None, vocabulary.NARROW_USER_ROLE.list_others(clause.value), type_=CTexts, unique=True)
        held = tables.user_roles.alias()
        return tables.users.c.sourced_id.in_(sa.select(held.c.user_id).where(held.c.role != sa.all_(others)))


class _Username(kinds.Text):
    """The name of a login, which 1.1 requires: an empty text for a user without one, as contacts of Clever are. Filters
    read the column, which has an index."""

    def json(self, rights: ContentRights) -> sa.ColumnElement[str]:
        return sa.func.coalesce(super().json(rights), json_text.constant('""'), type_=sa.Text)


class User(records.UserRecord):
    """A user of 1.1."""

    wording = WORDING
    joined = (JoinedRows(SEEN_ROLES, frozenset({"metadata", "role", "orgs"}), _select_roles),)
    username = _Username(
        tables.users.c.username, "The name with which the user logs in", required=True, part=PersonPart.NAMES
    )
    role = _SingleRole(
        select_single_role,
        vocabulary.NARROW_USER_ROLE.vocabulary,
        "The role of the user",
        required=True,
        part=PersonPart.GUARDIANS,
        part_words=vocabulary.GUARDIAN_ROLES,
    )
    orgs = _Orgs(
        kinds.ORG,
        _role.org_id,
        kinds.ChildRows(_is_in_orgs, _make_preference_keys(_role)),
        "The orgs at which the user has this role, the main one first",
        required=True,
    )


class Enrollment(records.EnrollmentRecord):
    """An enrollment of 1.1."""

    role = kinds.Token(
        tables.enrollments.c.role, vocabulary.NARROW_ENROLLMENT_ROLE, "The role of the user in the class", required=True
    )


class Demographics(records.DemographicsRecord):
    """Demographics of 1.1."""

    sex = kinds.Token(tables.demographics.c.sex, vocabulary.NARROW_SEX, "The sex", withheld_as=WithheldField.SEX)
