"""The facets of the roster: the properties by which operators narrow a collection, beside search and filter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from roster_service.db import tables
from roster_service.db.tables import feeds
from roster_service.roster.references import REFERENCES, refers_to
from roster_service.roster.visibility import has_row
from roster_service.roster.vocabulary import ENROLLMENT_ROLES, ORG_TYPES, SESSION_TYPES, STATUS, USER_ROLES

_users, _roles = tables.users.c, tables.user_roles
_Condition = Callable[[str], sa.ColumnElement[bool]]


@dataclass(frozen=True)
class Facet:
    """A property of records. `words`: the values to choose from; none where any text can be given. `condition`: that a
    record has a value. `values`: selects the (id, value) pairs of the records; None for a facet that a link sets, whose
    values nobody counts. `names`: the table of the record that the value is the id of, or None."""

    words: Sequence[str]
    condition: _Condition
    values: sa.Select[Any] | None
    names: sa.Table | None


def _of_column(column: sa.Column[Any], words: Sequence[str] = ()) -> Facet:
    reference, key = REFERENCES.get(column), column.table.c.sourced_id
    if reference is not None:
        return Facet(words, lambda value: refers_to(column, value), None, reference.target)
    return Facet(words, lambda value: column == value, sa.select(key.label("id"), column.label("value")), None)


def _of_list(column: sa.Column[Any]) -> Facet:
    key = column.table.c.sourced_id
    values = sa.select(key.label("id"), sa.func.unnest(column).label("value"))
    return Facet((), lambda value: column.contains([value]), values, None)


def _of_feed(table: sa.Table) -> Facet:
    def condition(name: str) -> sa.ColumnElement[bool]:
        return table.c.feed_id == sa.select(feeds.c.id).where(feeds.c.name == name).scalar_subquery()

    values = sa.select(table.c.sourced_id.label("id"), feeds.c.name.label("value"))
    return Facet((), condition, values.join(feeds, feeds.c.id == table.c.feed_id), None)


def _of_roles(condition: Callable[[Any, str], sa.ColumnElement[bool]], names: sa.Table) -> Facet:
    """Of people: a property of one of their roles."""

    def has_role(value: str) -> sa.ColumnElement[bool]:
        role = _roles.alias()
        return has_row(role, role.c.user_id == _users.sourced_id, condition(role.c, value))

    return Facet((), has_role, None, names)


def _is_in_district(role: Any, district: str) -> sa.ColumnElement[bool]:
    org = tables.orgs.alias()
    return has_row(org, org.c.sourced_id == role.org_id, org.c.district_id == district)


def _is_in_class(value: str) -> sa.ColumnElement[bool]:
    enrolled = tables.enrollments.alias()
    return has_row(
        enrolled,
        enrolled.c.user_id == _users.sourced_id,
        enrolled.c.class_id == value,
        enrolled.c.status == "active",
    )


def _has_role(value: str) -> sa.ColumnElement[bool]:
    role = _roles.alias()
    return has_row(role, role.c.user_id == _users.sourced_id, role.c.role == value)


_ROLE = Facet(
    USER_ROLES.words,
    _has_role,
    sa.select(_roles.c.user_id.label("id"), _roles.c.role.label("value")).distinct(),
    None,
)


_OWN_FACETS: Mapping[sa.Table, Mapping[str, Facet]] = {
    tables.orgs: {
        "type": _of_column(tables.orgs.c.type, ORG_TYPES.words),
        "district": _of_column(tables.orgs.c.district_id),
        "parent": _of_column(tables.orgs.c.parent_id),
    },
    tables.users: {
        "role": _ROLE,
        "grade": _of_list(_users.grades),
        "district": _of_roles(_is_in_district, tables.orgs),
        "school": _of_roles(lambda role, value: role.org_id == value, tables.orgs),
        "class": Facet((), _is_in_class, None, tables.classes),
    },
    tables.classes: {
        "grade": _of_list(tables.classes.c.grades),
        "school": _of_column(tables.classes.c.school_id),
        "course": _of_column(tables.classes.c.course_id),
        "term": _of_column(tables.classes.c.term_ids),
    },
    tables.courses: {
        "grade": _of_list(tables.courses.c.grades),
        "school": _of_column(tables.courses.c.org_id),
        "year": _of_column(tables.courses.c.school_year_id),
    },
    tables.academic_sessions: {
        "type": _of_column(tables.academic_sessions.c.type, SESSION_TYPES.words),
        "parent": _of_column(tables.academic_sessions.c.parent_id),
    },
    tables.enrollments: {
        "role": _of_column(tables.enrollments.c.role, ENROLLMENT_ROLES.words),
        "school": _of_column(tables.enrollments.c.school_id),
        "class": _of_column(tables.enrollments.c.class_id),
        "user": _of_column(tables.enrollments.c.user_id),
    },
    tables.demographics: {},
}
FACETS: Mapping[sa.Table, Mapping[str, Facet]] = {
    table: {**own, "feed": _of_feed(table), "status": _of_column(table.c.status, STATUS.words)}
    for table, own in _OWN_FACETS.items()
}


def make_facet_conditions(table: sa.Table, chosen: Mapping[str, str]) -> Iterator[sa.ColumnElement[bool]]:
    """Yields the condition of each chosen facet. Raises KeyError for a facet that the collection does not have."""
    for name, value in chosen.items():
        yield FACETS[table][name].condition(value)
