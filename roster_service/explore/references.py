"""The references between records, both ways, and the texts by which people know records."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from roster_service.db import tables
from roster_service.db.tables import CText
from roster_service.feeds.run_history import TYPES
from roster_service.roster.record_names import LABEL_COLUMNS, make_label, read_names
from roster_service.roster.references import REFERENCES, Reference, is_list, list_items, refers_to

# How many references of one kind a record shows, and how many people a class; the list of the collection has all.
SHOWN, SHOWN_PEOPLE = 10, 100

_orgs, _sessions, _courses = tables.orgs.c, tables.academic_sessions.c, tables.courses.c
_classes, _users, _enrollments = tables.classes.c, tables.users.c, tables.enrollments.c
_roles, _agents = tables.user_roles.c, tables.user_agents.c

_NOTHING = sa.literal(None, CText)
LABELS: Mapping[sa.Table, sa.ColumnElement[str]] = {table: make_label(table, table) for table in LABEL_COLUMNS}


@dataclass(frozen=True)
class Relation:
    """A kind of reference. `target`: the table of the other records; `ids`: selects (id, a detail such as the role, or
    NULL) for the id of the record, in order; `facet`: of the target's collection, that lists all of them, or None;
    `most`: how many are shown."""

    title: str
    target: sa.Table
    ids: Callable[[str], sa.Select[Any]]
    facet: str | None
    most: int = SHOWN


@dataclass(frozen=True)
class RecordReference:
    """A record that another one refers to, or that refers to it. `label`: its name; None if the roster does not have
    it, or if it is deleted."""

    sourcedId: str  # noqa: N815  (the name in OneRoster)
    label: str | None
    detail: str | None


@dataclass(frozen=True)
class References:
    """The references of one kind. `collection`, `facet`: of the list that has all of them, or None; `more`: whether
    there are more than these."""

    title: str
    collection: str
    facet: str | None
    shown: Sequence[RecordReference]
    more: bool


def _to(title: str, column: sa.Column[Any], detail: sa.ColumnElement[Any] = _NOTHING) -> Relation:
    """The records whose ids the column of the record, or of its parts, has."""
    found = REFERENCES[column]
    if is_list(column):
        return _list_all(title, found)
    # A district is its own district. Demographics have the id of their user.
    others = () if column is found.own else (column != found.own,)
    return _by(title, found.target, found.own, column, detail, None, column.is_not(None), *others)


def _list_all(title: str, reference: Reference) -> Relation:
    """The records of a list of references, in its order."""
    items = list_items(reference.column)

    def select_ids(value: str) -> sa.Select[Any]:
        found = sa.select(items.c.item.label("id"), _NOTHING.label("detail"))
        found = found.select_from(reference.record.join(items, sa.true()))
        return found.where(reference.own == value).order_by(items.c.ordinality)

    return Relation(title, reference.target, select_ids, None)


def _from(title: str, column: sa.Column[Any], facet: str | None, detail: sa.ColumnElement[Any] = _NOTHING) -> Relation:
    """The records that have the id of the record in a column: the live ones, or by their parts."""
    found = REFERENCES[column]
    live = () if column.table is not found.record else (found.record.c.status == "active",)
    return _by(title, found.record, column, found.own, detail, facet, *live)


def _by(
    title: str,
    target: sa.Table,
    own: sa.Column[Any],
    other: sa.Column[Any],
    detail: sa.ColumnElement[Any],
    facet: str | None,
    *more: sa.ColumnElement[bool],
) -> Relation:
    """By the rows of a table: column `own` has the id of the record, `other` that of the target."""
    # With the key of the table, each id is in one row, and PostgreSQL reads no more rows than are shown.
    is_key = other is other.table.c.get("sourced_id")
    first = detail if is_key else sa.func.min(detail, type_=CText)

    def select_ids(value: str) -> sa.Select[Any]:
        found = sa.select(other.label("id"), first.label("detail")).where(refers_to(own, value), *more).order_by(other)
        return found if is_key else found.group_by(other)

    return Relation(title, target, select_ids, facet)


def _enrolled(title: str, has_role: sa.ColumnElement[bool]) -> Relation:
    """The people of a class whose enrollments have a role, by their names."""

    def select_ids(value: str) -> sa.Select[Any]:
        found = sa.select(_enrollments.user_id.label("id"), sa.func.min(_enrollments.role, type_=CText).label("detail"))
        found = found.outerjoin_from(tables.enrollments, tables.users, _users.sourced_id == _enrollments.user_id)
        found = found.where(_enrollments.class_id == value, _enrollments.status == "active", has_role)
        return found.group_by(_enrollments.user_id, *_NAMES).order_by(*_NAMES, _enrollments.user_id)

    return Relation(title, tables.users, select_ids, "class", SHOWN_PEOPLE)


_NAMES = (_users.family_name, _users.given_name)
RELATIONS: Mapping[sa.Table, tuple[Relation, ...]] = {
    tables.orgs: (
        _to("Parent", _orgs.parent_id),
        _to("District", _orgs.district_id),
        _from("Schools and orgs below it", _orgs.parent_id, "parent"),
        _from("Courses", _courses.org_id, "school"),
        _from("Classes", _classes.school_id, "school"),
        _from("Enrollments", _enrollments.school_id, "school"),
        _from("People", _roles.org_id, "school", _roles.role),
    ),
    tables.academic_sessions: (
        _to("Parent", _sessions.parent_id),
        _from("Terms within it", _sessions.parent_id, "parent"),
        _from("Courses of the year", _courses.school_year_id, "year"),
        _from("Classes", _classes.term_ids, "term"),
    ),
    tables.courses: (
        _to("Org", _courses.org_id),
        _to("School year", _courses.school_year_id),
        _from("Classes", _classes.course_id, "course"),
    ),
    tables.classes: (
        _to("School", _classes.school_id),
        _to("Course", _classes.course_id),
        _to("Terms", _classes.term_ids),
        _enrolled("Teachers", _enrollments.role == "teacher"),
        _enrolled("Students", _enrollments.role == "student"),
        _enrolled("Others", _enrollments.role.not_in(("teacher", "student"))),
        _from("Enrollments", _enrollments.class_id, "class"),
    ),
    tables.users: (
        _to("Schools", _roles.org_id, _roles.role),
        _to("Primary org", _users.primary_org_id),
        _by(
            "Classes",
            tables.classes,
            _enrollments.user_id,
            _enrollments.class_id,
            _enrollments.role,
            None,
            _enrollments.status == "active",
        ),
        _from("Enrollments", _enrollments.user_id, "user"),
        _to("Agents", _agents.agent_id),
        _from("Agent of", _agents.agent_id, None),
        _from("Demographics", tables.demographics.c.sourced_id, None),
    ),
    tables.enrollments: (
        _to("User", _enrollments.user_id),
        _to("Class", _enrollments.class_id),
        _to("School", _enrollments.school_id),
    ),
    tables.demographics: (_to("User", tables.demographics.c.sourced_id),),
}


def read_labels(connection: sa.Connection, table: sa.Table, ids: Iterable[str]) -> Mapping[str, str]:
    """Returns the labels of the live records of a table with these ids."""
    wanted = sorted(set(ids))
    if not wanted:
        return {}
    rows = sa.select(table.c.sourced_id, LABELS[table]).where(
        table.c.sourced_id.in_(wanted), table.c.status == "active"
    )
    return {row[0]: row[1] for row in connection.execute(rows)}


def read_references(
    connection: sa.Connection, table: sa.Table, sourced_id: str, expected: Collection[str]
) -> list[References]:
    """Returns the references of a record both ways, without the kinds of which it has none, unless their titles are
    `expected`."""
    found = []
    for relation in RELATIONS[table]:
        rows = connection.execute(relation.ids(sourced_id).limit(relation.most + 1)).all()
        if not rows and relation.title not in expected:
            continue
        labels = read_labels(connection, relation.target, (row.id for row in rows))
        if relation.target is tables.enrollments:
            # The label of an enrollment is its role alone.
            labels = read_names(connection, tables.enrollments, labels, {})
        shown = [RecordReference(row.id, labels.get(row.id), row.detail) for row in rows[: relation.most]]
        collection = TYPES[relation.target.name]
        found.append(References(relation.title, collection, relation.facet, shown, len(rows) > relation.most))
    return found
