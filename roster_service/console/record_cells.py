"""The cells of a list of records: which properties a list of each resource shows, with links to the records that they
name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from roster_service.db import tables
from roster_service.explore.references import read_labels
from roster_service.explore.whole_roster import FoundRecord
from roster_service.schemas.versions import (
    ACADEMIC_SESSIONS,
    CLASSES,
    COURSES,
    DEMOGRAPHICS,
    ENROLLMENTS,
    ORGS,
    USERS,
    Resource,
)

# The tables of references, by their type in the JSON.
REF_TABLES: Mapping[str, sa.Table] = {
    "org": tables.orgs,
    "academicSession": tables.academic_sessions,
    "course": tables.courses,
    "class": tables.classes,
    "user": tables.users,
}
# The labels of records, by the type of reference and the id.
Labels = Mapping[tuple[str, str], str]
Body = Mapping[str, Any]


@dataclass(frozen=True)
class Item:
    """A text in a cell. `record`: the id of the record that it names, None for a plain text."""

    text: str
    record: str | None


@dataclass(frozen=True)
class Inside:
    """A link from a record to those below it. `query`: of the list."""

    text: str
    query: Mapping[str, str]


@dataclass(frozen=True)
class RecordRow:
    """A row of a list. `cells`: in the order of the columns; `inside`: the lists of the records below."""

    sourcedId: str  # noqa: N815  (the name in OneRoster)
    name: str
    cells: Sequence[Sequence[Item]]
    inside: Sequence[Inside]
    feed: str
    status: str


_Cell = Callable[[Body, Labels], Sequence[Item]]


def _text(name: str) -> _Cell:
    return lambda body, _labels: [Item(str(body[name]), None)] if body.get(name) else []


def _texts(name: str) -> _Cell:
    return lambda body, _labels: [Item(value, None) for value in body.get(name) or ()]


def _refer(ref: Body, labels: Labels) -> Item:
    return Item(labels.get((ref["type"], ref["sourcedId"]), ref["sourcedId"]), ref["sourcedId"])


def _ref(name: str) -> _Cell:
    return lambda body, labels: [_refer(body[name], labels)] if name in body else []


def _refs(name: str) -> _Cell:
    return lambda body, labels: [_refer(ref, labels) for ref in body.get(name) or ()]


def _roles(body: Body, labels: Labels) -> Sequence[Item]:
    found = ((role["role"], _refer(role["org"], labels)) for role in body["roles"])
    return [Item(f"{role}, {org.text}", org.record) for role, org in found]


COLUMNS: Mapping[Resource, Mapping[str, _Cell]] = {
    ORGS: {"Type": _text("type"), "Identifier": _text("identifier"), "Parent": _ref("parent")},
    ACADEMIC_SESSIONS: {
        "Type": _text("type"),
        "First day": _text("startDate"),
        "Ends before": _text("endDate"),
        "Parent": _ref("parent"),
    },
    COURSES: {"Code": _text("courseCode"), "Org": _ref("org"), "Grades": _texts("grades")},
    CLASSES: {
        "Code": _text("classCode"),
        "School": _ref("school"),
        "Course": _ref("course"),
        "Terms": _refs("terms"),
        "Grades": _texts("grades"),
    },
    USERS: {
        "Roles": _roles,
        "Grades": _texts("grades"),
        "Identifier": _text("identifier"),
        "E-mail": _text("email"),
    },
    ENROLLMENTS: {
        "User": _ref("user"),
        "Class": _ref("class"),
        "School": _ref("school"),
        "First day": _text("beginDate"),
        "Ends before": _text("endDate"),
    },
    DEMOGRAPHICS: {},
}


def name_record(resource: Resource, body: Body) -> str:
    """Returns the text by which people know a record."""
    if resource is USERS:
        return f"{body['givenName']} {body['familyName']}"
    return str(body.get("name") or body.get("title") or body.get("role") or body["sourcedId"])


def list_inside(resource: Resource, body: Body) -> list[Inside]:
    """Returns the links to the lists of what is below a record."""
    own = str(body["sourcedId"])
    if resource is ORGS and body["type"] == "school":
        below = {"Classes": ("classes", "school"), "People": ("users", "school"), "Courses": ("courses", "school")}
    elif resource is ORGS and body["type"] == "district":
        below = {"Schools": ("orgs", "district"), "People": ("users", "district")}
    else:
        below = {
            ORGS: {"Orgs below": ("orgs", "parent"), "People": ("users", "school")},
            ACADEMIC_SESSIONS: {"Classes": ("classes", "term")},
            COURSES: {"Classes": ("classes", "course")},
            CLASSES: {"People": ("users", "class"), "Enrollments": ("enrollments", "class")},
            USERS: {"Enrollments": ("enrollments", "user")},
        }.get(resource, {})
    return [
        Inside(text, {"kind": kind, facet: own, **({"type": "school"} if text == "Schools" else {})})
        for text, (kind, facet) in below.items()
    ]


def find_refs(value: Any) -> Iterator[tuple[str, str]]:
    """Yields (type, sourcedId) of every reference in a JSON value."""
    if isinstance(value, dict):
        if "href" in value and "sourcedId" in value and "type" in value:
            yield value["type"], value["sourcedId"]
        for item in value.values():
            yield from find_refs(item)
    elif isinstance(value, list):
        for item in value:
            yield from find_refs(item)


def read_ref_labels(connection: sa.Connection, bodies: Sequence[Any]) -> Labels:
    """Reads the labels of all records that JSON values refer to."""
    named = set(find_refs(list(bodies)))
    return {
        (kind, key): label
        for kind, table in REF_TABLES.items()
        for key, label in read_labels(connection, table, (key for of, key in named if of == kind)).items()
    }


def make_rows(connection: sa.Connection, resource: Resource, records: Sequence[FoundRecord]) -> list[RecordRow]:
    """Returns the rows of a list of records."""
    labels = read_ref_labels(connection, [record.body for record in records])
    return [
        RecordRow(
            record.sourcedId,
            name_record(resource, record.body),
            [cell(record.body, labels) for cell in COLUMNS[resource].values()],
            list_inside(resource, record.body),
            record.feed,
            record.body["status"],
        )
        for record in records
    ]
