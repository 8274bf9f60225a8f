"""The cells of the matrix: every path, version, scope set and grant shape, asked in every way; what each must answer.

What is asked is drawn from all that the roster holds, hidden or not, so that filters and sorts also name what a caller
may not see. Of the parents and single records each caller asks for another half. The draw is the same in every run.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode

from roster_service.rostering.endpoints import ENDPOINTS, Cardinality, Endpoint
from tests.contract import evaluation
from tests.contract.client import (
    CORE,
    DEMOGRAPHIC_METADATA,
    DEMOGRAPHICS,
    FULL,
    GUARDIANS,
    GUARDIANS_METADATA,
    ORGS_METADATA,
    ROOTS,
    SCOPES,
    STUDENTS_METADATA,
    VERSIONS,
)
from tests.contract.model import filterable, sortable, top_level

from . import departed
from .path_collections import COLLECTIONS, Collection
from .record_json import HIDDEN_OF_DEMOGRAPHICS, HIDDEN_OF_USERS, Json, Shower, list_hidden
from .roster import ROSTER
from .visible_records import GRANTS, Eyes, Grants

SCOPE_SETS = {
    "core": (CORE,),
    "full": (FULL,),
    "demographics": (DEMOGRAPHICS,),
    "guardians": (FULL, GUARDIANS),
    "guardians-metadata": (FULL, GUARDIANS, GUARDIANS_METADATA),
    "metadata-of-hidden-guardians": (FULL, GUARDIANS_METADATA),
    "students-metadata": (FULL, STUDENTS_METADATA),
    "guardians-and-students-metadata": (CORE, GUARDIANS, STUDENTS_METADATA),
    "both-metadata-of-users": (CORE, GUARDIANS_METADATA, STUDENTS_METADATA),
    "orgs-metadata": (FULL, ORGS_METADATA),
    "demographics-and-guardians": (DEMOGRAPHICS, GUARDIANS),
    "demographics-metadata": (DEMOGRAPHICS, CORE, DEMOGRAPHIC_METADATA),
    "metadata-alone": (GUARDIANS, GUARDIANS_METADATA, STUDENTS_METADATA, DEMOGRAPHIC_METADATA, ORGS_METADATA),
    "all-but-guardians": tuple(scope for scope in SCOPES if scope != GUARDIANS),
    "all": SCOPES,
}
# The words of the fields that are withheld.
WITHHELD_SETS: Mapping[str, tuple[str, ...]] = {
    "nothing": (),
    "phones": ("phone", "sms"),
    "some of each": ("email", "identifier", "agents", "birthDate", "asian"),
    "everything": (*HIDDEN_OF_USERS, *HIDDEN_OF_DEMOGRAPHICS),
}
UNKNOWN = "no-such-record"
METADATA_NAMES = ("metadata.note", "metadata.secretOf")
# Which ids stand for each name in a path: seen by some, hidden from others, of another kind, and of nobody.
PARENTS: Mapping[str, tuple[str, ...]] = {
    "schoolId": ("a-1", "a-2", "b-1", "b-2", "c-1", "a", "b-campus", UNKNOWN),
    "termId": ("fall", "spring", "spring-part", "c-fall", "year", "gone-term", UNKNOWN),
    "courseId": (*(row["sourced_id"] for row in ROSTER["courses"]), UNKNOWN),
    "classId": (*(row["sourced_id"] for row in ROSTER["classes"]), UNKNOWN),
    "studentId": ("a-ann", "b-ann", "c-ann", "moved", "two", "mix-2", "mix-3", "nobody", "t-a"),
    "teacherId": ("t-a", "t-ab", "mix", "c-t", "a-ann"),
    "userId": ("g-a", "moved", "t-ab", "coach", "a-gone", "c-ann", UNKNOWN),
}
# A class within a school: its own school, and two others.
CLASSES_OF_SCHOOLS = tuple(
    (school, row["sourced_id"])
    for row in ROSTER["classes"]
    for school in dict.fromkeys((row["school_id"], "a-1", "b-1"))
)
RESOURCES = {
    "orgs": "/orgs",
    "academic_sessions": "/academicSessions",
    "courses": "/courses",
    "classes": "/classes",
    "users": "/users",
    "enrollments": "/enrollments",
    "demographics": "/demographics",
}
# How many questions of each kind a caller asks of a list, and of the members of one parent.
FILTERS_OF_A_LIST, FILTERS_OF_MEMBERS = 6, 2
SORTS_OF_A_LIST, FIELDS_OF_A_LIST = 3, 2


@dataclass(frozen=True)
class Caller:
    """Who asks: a version, a set of scopes by name, a shape of grants by name, a set of withheld fields by name."""

    version: str
    scopes: str
    grants: str
    withheld: str


@dataclass(frozen=True)
class Cell:
    """A request. `kind`: the way in which it asks."""

    caller: Caller
    endpoint: Endpoint
    ids: tuple[tuple[str, str], ...]
    kind: str
    query: tuple[tuple[str, str], ...] = ()

    @property
    def address(self) -> str:
        """Where it is sent."""
        path = self.endpoint.path
        for name, sourced_id in self.ids:
            path = path.replace(f"{{{name}}}", quote(sourced_id, safe=""))
        query = f"?{urlencode(self.query, quote_via=quote)}" if self.query else ""
        return f"{ROOTS[self.caller.version]}{path}{query}"


@dataclass(frozen=True)
class Outcome:
    """An answer: its status, the code of a refusal or warning, the records in order, and how many there are in all."""

    status: int
    minor: str | None = None
    key: str | None = None
    records: Sequence[Json] = field(default_factory=tuple)
    total: int | None = None


# --- what is asked -----------------------------------------------------------------------------------------------


def make_cells() -> Iterator[Cell]:
    """Every cell, caller by caller. The sets of withheld fields take turns: each meets each of the grants and versions,
    and most sets of scopes."""
    callers = itertools.product(VERSIONS, SCOPE_SETS, GRANTS)
    for (version, scopes, grants), withheld in zip(callers, itertools.cycle(WITHHELD_SETS), strict=False):
        caller = Caller(version, scopes, grants, withheld)
        for endpoint in ENDPOINTS:
            yield from _ask(caller, endpoint)


def _ask(caller: Caller, endpoint: Endpoint) -> Iterator[Cell]:
    draw = random.Random(f"{caller} {endpoint.path}")
    questions = (
        _ask_single if endpoint.cardinality is Cardinality.SINGLE else _ask_nested if endpoint.ids else _ask_list
    )
    cells = questions(caller, endpoint, draw)
    if opens(SCOPE_SETS[caller.scopes], endpoint.path):
        yield from cells
    else:
        yield next(cells)


def _ask_list(caller: Caller, endpoint: Endpoint, draw: random.Random) -> Iterator[Cell]:
    def ask(kind: str, **query: str) -> Cell:
        return Cell(caller, endpoint, (), kind, tuple(query.items()))

    table = COLLECTIONS[endpoint.path].table
    yield ask("list")
    yield ask("list", limit="0")
    yield ask("list", limit="2", offset="1")
    for number in range(FILTERS_OF_A_LIST):
        yield ask("filtered", filter=_draw_filter(caller.version, table, draw, revealing=number % 2 == 0))
    for _ in range(SORTS_OF_A_LIST):
        yield ask("sorted", **_draw_sort(caller.version, table, draw))
    for _ in range(FIELDS_OF_A_LIST):
        yield ask("fields", fields=_draw_fields(caller.version, table, draw))


def _ask_nested(caller: Caller, endpoint: Endpoint, draw: random.Random) -> Iterator[Cell]:
    table = COLLECTIONS[endpoint.path].table
    names = endpoint.ids
    parents: Sequence[tuple[str, ...]] = CLASSES_OF_SCHOOLS if len(names) == 2 else [(it,) for it in PARENTS[names[0]]]
    for parent in draw.sample(parents, len(parents) // 2):
        yield Cell(caller, endpoint, tuple(zip(names, parent, strict=True)), "nested")
    for _ in range(FILTERS_OF_MEMBERS):
        query = ("filter", _draw_filter(caller.version, table, draw, revealing=True))
        yield Cell(caller, endpoint, tuple(zip(names, draw.choice(parents), strict=True)), "filtered", (query,))
    sort = tuple(_draw_sort(caller.version, table, draw).items())
    yield Cell(caller, endpoint, tuple(zip(names, draw.choice(parents), strict=True)), "sorted", sort)
    fields = ("fields", _draw_fields(caller.version, table, draw))
    yield Cell(caller, endpoint, tuple(zip(names, draw.choice(parents), strict=True)), "fields", (fields,))


def _ask_single(caller: Caller, endpoint: Endpoint, draw: random.Random) -> Iterator[Cell]:
    table = find_collection(endpoint).table
    left = [it.sourced_id for it in departed.DEPARTURES if it.table == table]
    ids = [*dict.fromkeys([*(row["sourced_id"] for row in ROSTER[table]), *left]), UNKNOWN]
    for sourced_id in draw.sample(ids, len(ids) // 2):
        yield Cell(caller, endpoint, (("sourcedId", sourced_id),), "single")
    fields = ("fields", _draw_fields(caller.version, table, draw))
    yield Cell(caller, endpoint, (("sourcedId", draw.choice(ids)),), "fields", (fields,))


# For names that no record has a value for.
NO_VALUES = {"text": "x", "texts": "x", "flag": "true", "day": "2026-11-01", "instant": "2026-11-01"}
# The names behind which something can be hidden.
REVEALING = (
    "metadata",
    "agents",
    "email",
    "phone",
    "identifier",
    "userMasterIdentifier",
    "userIds",
    "userProfiles",
    "birthDate",
    "asian",
    "parent",
    "children",
    "orgs",
    "org",
    "role",
    "roles",
    "primaryOrg",
    "terms",
    "course",
)


def _draw_name(version: str, table: str, draw: random.Random, *, revealing: bool) -> str:
    names = [*filterable_names(version, table), *METADATA_NAMES]
    reported = [name for name in names if name.partition(".")[0] in REVEALING]
    return draw.choice(reported if revealing and reported else names)


def _draw_filter(version: str, table: str, draw: random.Random, *, revealing: bool) -> str:
    name = _draw_name(version, table, draw, revealing=revealing)
    kind = filterable_names(version, table).get(name, "text").removeprefix("many ")
    values = all_values(version, table, name) or (NO_VALUES[kind],)
    value = draw.choice(values)
    signs = {"flag": ["=", "!="], "texts": ["=", "!=", "~"]}.get(kind, ["=", "!=", ">", "<=", ">=", "<"])
    sign = draw.choice([*signs, "~", "="] if kind == "text" else signs)
    clause = f"{name}{sign}'{value[1:] if sign == '~' and kind == 'text' and len(value) > 1 else value}'"
    # What an OR could let out.
    return draw.choice(
        [clause, f"{clause} OR status='active'", f"sourcedId!='x' OR {clause}", f"{clause} AND sourcedId~'a'"]
    )


def _draw_sort(version: str, table: str, draw: random.Random) -> dict[str, str]:
    names = sortable_names(version, table)
    query = {"sort": draw.choice([*names, *METADATA_NAMES, METADATA_NAMES[0], "noSuchField"])}
    return query | draw.choice(({}, {"orderBy": "desc"}))


def _draw_fields(version: str, table: str, draw: random.Random) -> str:
    names = top_level(version, RESOURCES[table])
    return ",".join(["sourcedId", *draw.sample(names, 3), *draw.choice(([], ["metadata"], ["noSuchField"]))])


@cache
def filterable_names(version: str, table: str) -> dict[str, str]:
    """The names that a filter takes, less metadata, and the kind of each."""
    names = filterable(version, RESOURCES[table])
    return {name: kind for name, kind in names.items() if not name.startswith("metadata")}


@cache
def sortable_names(version: str, table: str) -> list[str]:
    """The names that a sort takes, less metadata."""
    return [name for name in sortable(version, RESOURCES[table]) if not name.startswith("metadata")]


@cache
def all_values(version: str, table: str, name: str) -> tuple[str, ...]:
    """Every value of a name in the whole roster."""
    everybody = Eyes(Grants(("a", "b", "c")), guardians=True)
    shower = Shower(everybody, version, SCOPES)
    rows = [row for row in ROSTER[table] if row["sourced_id"] in getattr(everybody, table)]
    values = {value for row in rows for value in evaluation.values_at(shower.show(table, row), name)}
    if name in departed.OWN:
        values |= {departed.show(it, version)[name] for it in departed.DEPARTURES if it.table == table}
    return tuple(sorted(values))


# --- what is answered --------------------------------------------------------------------------------------------


def opens(scopes: Sequence[str], path: str) -> bool:
    """Whether one of the scopes opens a path."""
    if path.startswith("/demographics"):
        return DEMOGRAPHICS in scopes
    listed = path.count("/") == 1 or path.endswith("/{sourcedId}")
    return FULL in scopes or (listed and CORE in scopes)


def find_collection(endpoint: Endpoint) -> Collection:
    """The collection of an endpoint, or the one that its single record is taken from."""
    return COLLECTIONS[endpoint.path.removesuffix("/{sourcedId}")]


@cache
def _find_eyes(grants: str, guardians: bool) -> Eyes:
    return Eyes(GRANTS[grants], guardians=guardians)


@cache
def show_all(caller: Caller, table: str) -> dict[str, Json]:
    """What the caller is shown of every record of a table that they see, by sourcedId."""
    eyes = find_eyes(caller)
    shower = Shower(eyes, caller.version, SCOPE_SETS[caller.scopes], WITHHELD_SETS[caller.withheld])
    return {
        row["sourced_id"]: shower.show(table, row)
        for row in sorted(ROSTER[table], key=lambda row: row["sourced_id"])
        if row["sourced_id"] in getattr(eyes, table)
    }


def find_eyes(caller: Caller) -> Eyes:
    """What the caller sees."""
    return _find_eyes(caller.grants, GUARDIANS in SCOPE_SETS[caller.scopes])


def has_metadata(scopes: Sequence[str], table: str) -> bool:
    """Whether metadata exists at all for a caller with these scopes."""
    wanted = {
        "orgs": {ORGS_METADATA},
        "users": {STUDENTS_METADATA, GUARDIANS_METADATA},
        "demographics": {DEMOGRAPHIC_METADATA},
    }
    return bool(wanted.get(table, set()) & set(scopes))


def list_departed(cell: Cell) -> dict[str, Json]:
    """The departures that the path means, by sourcedId."""
    path = cell.endpoint.path.removesuffix("/{sourcedId}")
    if path not in departed.LISTED:
        return {}
    found = departed.list_departures(find_eyes(cell.caller), path)
    return {it.sourced_id: departed.show(it, cell.caller.version) for it in found}


def choose(cell: Cell) -> list[Json]:
    """The records and departures that the path means, whole and in the default order, before anything is asked of
    them."""
    collection = find_collection(cell.endpoint)
    eyes, ids = find_eyes(cell.caller), dict(cell.ids)
    shown = show_all(cell.caller, collection.table)
    rows = {row["sourced_id"]: row for row in ROSTER[collection.table]}
    held = {
        sourced_id: record
        for sourced_id, record in shown.items()
        if collection.holds(eyes, rows[sourced_id], ids, cell.caller.version)
    }
    return [record for _, record in sorted({**list_departed(cell), **held}.items())]


def expect(cell: Cell) -> Outcome:
    """What a cell must be answered with."""
    scopes = SCOPE_SETS[cell.caller.scopes]
    collection = find_collection(cell.endpoint)
    if not opens(scopes, cell.endpoint.path):
        return Outcome(403, "forbidden")
    query = dict(cell.query)
    hidden = list_hidden(collection.table, WITHHELD_SETS[cell.caller.withheld])
    every = filterable_names(cell.caller.version, collection.table)
    kinds = {name: kind for name, kind in every.items() if name.partition(".")[0] not in hidden}
    tops = [name for name in top_level(cell.caller.version, RESOURCES[collection.table]) if name not in hidden]
    if has_metadata(scopes, collection.table):
        kinds |= dict.fromkeys(METADATA_NAMES, "text")
    else:
        tops = [name for name in tops if name != "metadata"]
    records, left = choose(cell), list_departed(cell)
    minor = None
    if "filter" in query:
        if any(name not in kinds for name in _names_in(query["filter"])):
            return Outcome(400, "invalid_filter_field")
        there = [record for record in records if record["sourcedId"] not in left]
        kept = set(evaluation.select(there, query["filter"], kinds))
        kept |= {key for key, record in left.items() if departed.matches(record, query["filter"], kinds)}
        records = [record for record in records if record["sourcedId"] in kept]
    if "sort" in query:
        sort = query["sort"] if query["sort"] in kinds else "sourcedId"
        minor = None if query["sort"] in kinds else "invalid_sort_field"
        sorted_by = [
            {name: record[name] for name in departed.OWN} if record["sourcedId"] in left else record
            for record in records
        ]
        places = {
            sourced_id: number for number, sourced_id in enumerate(evaluation.sort(sorted_by, sort, "orderBy" in query))
        }
        records = sorted(records, key=lambda record: places[record["sourcedId"]])
    if "fields" in query:
        asked = query["fields"].split(",")
        minor = None if set(asked) <= set(tops) else "invalid_selection_field"
        records = [{name: value for name, value in record.items() if name in asked} for record in records]
    if cell.endpoint.cardinality is Cardinality.SINGLE:
        wanted = dict(cell.ids)["sourcedId"]
        found = [record for record in records if record["sourcedId"] == wanted]
        return Outcome(200, minor, collection.singular, found, 1) if found else Outcome(404, "unknownobject")
    start, limit = int(query.get("offset", 0)), int(query.get("limit", 100))
    return Outcome(200, minor, collection.plural, records[start : start + limit], len(records))


def _names_in(text: str) -> list[str]:
    clauses = [part for whole in text.split(" OR ") for part in whole.split(" AND ")]
    return [evaluation.CLAUSE.fullmatch(clause)[1] for clause in clauses]  # type: ignore[index]


def read_outcome(status: int, headers: Mapping[str, str], body: Any) -> Outcome:
    """An answer of the service."""
    info = body.get("statusInfoSet", {})
    keys = [key for key in body if key != "statusInfoSet"]
    if status != 200:
        return Outcome(status, info.get("imsx_codeMinor"))
    (key,) = keys
    found = body[key]
    total = headers.get("X-Total-Count")
    return Outcome(
        status,
        info.get("imsx_codeMinor"),
        key,
        found if isinstance(found, list) else [found],
        None if total is None else int(total),
    )
