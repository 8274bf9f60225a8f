"""What left the sight of vendors: the departures of the matrix, who is shown each, and where, said a second time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from tests.contract import evaluation

from .record_json import ROOTS, Json, show_value
from .roster import FAR, NEAR, ROSTER, Row
from .visible_records import KEPT_AT, Eyes

# Later than every grant of the matrix: before its grant, a vendor is shown no departure.
LEFT_AT = datetime(2099, 1, 1, 6, 0, 0, 250_000, UTC)
LISTS = ("all", "any", "guardian", "listed", "student", "teacher")


@dataclass(frozen=True)
class Departed:
    """A record that left. The other fields: the orgs of its former label, which opened it."""

    table: str
    sourced_id: str
    feed: int
    left_at: datetime
    all: frozenset[str]
    any: frozenset[str]
    guardian: frozenset[str]
    listed: frozenset[str]
    student: frozenset[str]
    teacher: frozenset[str]


def _read(number: int, table: str, sourced_id: str, feed: int, **orgs: str) -> Departed:
    lists = {name: frozenset(orgs.get(name, "").split()) for name in LISTS}
    return Departed(table, sourced_id, feed, LEFT_AT + timedelta(hours=number - number % 2), **lists)


DEPARTURES = [
    _read(number, table, sourced_id, feed, **orgs)
    for number, (table, sourced_id, feed, orgs) in enumerate(
        [
            ("users", "left-a-student", NEAR, {"any": "a-1", "student": "a-1"}),
            ("users", "left-a-teacher", NEAR, {"any": "a-2", "teacher": "a-2"}),
            ("users", "left-a-guardian", NEAR, {"guardian": "a-1"}),
            ("users", "left-an-aide", NEAR, {"any": "a-2 b-1"}),
            ("users", "left-c-student", FAR, {"any": "c-1", "student": "c-1"}),
            # These are in the roster, and were elsewhere too.
            ("users", "b-ann", NEAR, {"any": "a-1", "student": "a-1"}),
            ("users", "g-a", NEAR, {"any": "a-2", "teacher": "a-2", "guardian": "a-1"}),
            # A teacher who was a student at the same school: nobody but the students' list has lost the user.
            ("users", "t-a", NEAR, {"any": "a-1", "student": "a-1"}),
            ("demographics", "left-a-student", NEAR, {"any": "a-1", "student": "a-1"}),
            ("demographics", "left-a-guardian", NEAR, {"guardian": "a-1"}),
            ("enrollments", "left-e", NEAR, {"all": "a-1", "any": "a-1"}),
            ("enrollments", "left-e-guest", NEAR, {"all": "a-2 b-2", "any": "a-2 b-2"}),
            ("enrollments", "left-e-guardian", NEAR, {"all": "a-1", "guardian": "a-1 b-1"}),
            ("classes", "left-class", NEAR, {"any": "a-1"}),
            ("courses", "left-course", NEAR, {"any": "b-1", "listed": "a"}),
            ("courses", "left-course-of-c", FAR, {"listed": "c-1"}),
        ]
    )
]
# The collections that show departures, and the word of the label that each asks for.
LISTED: Mapping[str, str | None] = {
    "/courses": None,
    "/classes": None,
    "/users": None,
    "/students": "student",
    "/teachers": "teacher",
    "/enrollments": None,
    "/demographics": None,
}
# The tables of people, and the person of a departure.
PEOPLE = {"users": "{}", "demographics": "{}", "enrollments": "the user of {}"}
# What a departure says, and what a filter and a sort find of it.
OWN = ("sourcedId", "status", "dateLastModified")


def list_departures(eyes: Eyes, path: str) -> list[Departed]:
    """The departures that a caller is shown in a list; `path`: of a collection without a parent."""
    table = {"/students": "users", "/teachers": "users"}.get(path, path.removeprefix("/"))
    word = LISTED[path]
    left = [
        it
        for it in DEPARTURES
        if it.table == table
        and it.sourced_id not in eyes.grants.kept
        and _opens(eyes, it)
        and (word is None or eyes.granted & getattr(it, word))
        and not _is_there(eyes, it, word)
    ]
    return [*left, *_list_kept(eyes, table, word)]


def _list_kept(eyes: Eyes, table: str, word: str | None) -> Iterator[Departed]:
    """The records of the people who are kept from the caller, who saw them before."""
    person = {"enrollments": "user_id"}.get(table, "sourced_id")
    for row in ROSTER[table] if table in PEOPLE else ():
        if row[person] in eyes.grants.kept and row["sourced_id"] in getattr(eyes.before, table):
            found = _read(0, table, row["sourced_id"], row["feed_id"])
            if word is None or _is_there(eyes.before, found, word):
                yield replace(found, left_at=KEPT_AT)


def _opens(eyes: Eyes, left: Departed) -> bool:
    some = left.any | left.guardian if eyes.guardians else left.any
    return left.all <= eyes.granted and bool(some & eyes.granted or left.listed & eyes.listing_orgs)


def _is_there(eyes: Eyes, left: Departed, word: str | None) -> bool:
    """Whether the caller still sees the record, with this role."""
    if left.sourced_id not in getattr(eyes, left.table):
        return False
    return word is None or any(role["role"] == word for role in eyes.roles(left.sourced_id))


def show(left: Departed, version: str) -> Json:
    """A departure: its id and its stamp, and what the schema of its type requires, without a content."""
    own = {"sourcedId": left.sourced_id, "status": "tobedeleted", "dateLastModified": show_value(left.left_at)}
    return own | _list_required(left.table, version)


def _list_required(table: str, version: str) -> Json:
    def ref(kind: str, path: str) -> Json:
        return {"href": f"{ROOTS[version]}/{path}/", "sourcedId": "", "type": kind}

    is_old = version == "v1p1"
    required: Mapping[str, Json] = {
        "courses": {"title": "", **({} if is_old else {"courseCode": ""})},
        "classes": {"title": "", "course": ref("course", "courses"), "school": ref("org", "orgs"), "terms": []},
        "users": {
            "enabledUser": "false",
            "givenName": "",
            "familyName": "",
            **({"username": "", "orgs": [], "role": "administrator"} if is_old else {"roles": []}),
        },
        "enrollments": {
            "user": ref("user", "users"),
            "class": ref("class", "classes"),
            "school": ref("org", "orgs"),
            "role": "administrator",
        },
        "demographics": {},
    }
    return required[table]


def matches(record: Json, text: str, kinds: Mapping[str, str]) -> bool:
    """Whether a filter finds a departure: a clause on anything but its own values never does."""
    clauses = [evaluation.CLAUSE.fullmatch(clause) for clause in re.split(" (?:AND|OR) ", text)]
    found = [
        clause is not None and clause[1] in OWN and evaluation.holds(record, *clause.groups(), kinds)
        for clause in clauses
    ]
    return all(found) if " AND " in text else any(found)


def list_label_rows() -> list[Row]:
    """The rows of visibility_labels of the departures, numbered apart from the others."""
    return [
        {
            "id": number,
            "feed_id": it.feed,
            "digest": str(number).encode(),
            **{f"{name}_orgs": sorted(getattr(it, name)) for name in LISTS},
        }
        for number, it in enumerate(DEPARTURES, 10_000)
    ]


def list_rows() -> list[Row]:
    """The rows of departures."""
    return [
        {
            "type": it.table,
            "sourced_id": it.sourced_id,
            "label_id": number,
            "feed_id": it.feed,
            "person_id": PEOPLE[it.table].format(it.sourced_id) if it.table in PEOPLE else None,
            "departed_at": it.left_at,
        }
        for number, it in enumerate(DEPARTURES, 10_000)
    ]
