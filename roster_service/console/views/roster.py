"""The roster: districts, schools, classes and people, by search, facets and filter."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import sqlalchemy as sa
from oneroster_filter import FieldType, Kind

from roster_service.accounts.clients import Client, list_clients
from roster_service.change_log.actors import OperatorRole
from roster_service.change_log.changes import Verb
from roster_service.console.record_cells import COLUMNS, Item, RecordRow, make_rows, name_record
from roster_service.console.screen import Form, Screen
from roster_service.console.visit import Outcome, Shown, Submission, Visit, read_number
from roster_service.db.deadline import limit_statements
from roster_service.db.tables import feeds
from roster_service.errors import CommandError, RefusedRequestError
from roster_service.explore.known_people import EXCLUDED, KnownPerson, Whereabouts, find_person
from roster_service.explore.references import read_labels
from roster_service.explore.roster_facets import FACETS
from roster_service.explore.roster_search import LEAST_CHARACTERS, MOST_CHARACTERS
from roster_service.explore.vendor_view import CollectionView, show_collection_as
from roster_service.explore.whole_roster import MOST_OFFSET, RIGHTS, Found, Wanted, find_records
from roster_service.feeds.feed_states import FeedState
from roster_service.feeds.rejected_rows import list_rejecting_runs
from roster_service.schemas.versions import (
    ACADEMIC_SESSIONS,
    CLASSES,
    COURSES,
    DEMOGRAPHICS,
    ENROLLMENTS,
    ORGS,
    USERS,
    V1P2,
    VERSIONS,
    Resource,
)
from roster_service.serving.params import Limits
from roster_service.serving.plan import is_sortable, make_resource_view
from roster_service.settings import Settings

PAGE = 50
# Of a file of CSV.
MOST_ROWS = 10_000
# Of a look with the eyes of a vendor, whose records are shown as JSON.
LOOKED = 25
# In seconds, for each statement of a page.
LONGEST = 10
# The collections, with the fields by which they are sorted unless the operator chooses another one.
KINDS: Mapping[str, tuple[Resource, str, str]] = {
    "orgs": (ORGS, "Districts and schools", "name"),
    "users": (USERS, "People", "familyName"),
    "classes": (CLASSES, "Classes", "title"),
    "courses": (COURSES, "Courses", "title"),
    "academicSessions": (ACADEMIC_SESSIONS, "Terms", "startDate"),
    "enrollments": (ENROLLMENTS, "Enrollments", "sourcedId"),
    "demographics": (DEMOGRAPHICS, "Demographics", "sourcedId"),
}
EXAMPLES: Mapping[Kind, str] = {
    Kind.TEXT: "{}~'ann'",
    Kind.FLAG: "{}='true'",
    Kind.INSTANT: "{}>'2026-11-21T02:00:00.000Z'",
    Kind.DAY: "{}>='2026-08-01'",
    Kind.TEXTS: "{}~'09,10'",
}


@dataclass(frozen=True)
class FieldHelp:
    """A name that a filter may use, its type in words, and a filter with it."""

    name: str
    type: str
    example: str


@dataclass(frozen=True)
class Choice:
    """A value of a facet, and the number of found records that have it; None where it was not counted."""

    value: str
    count: int | None


@dataclass(frozen=True)
class ShownFacet:
    """A facet. `value`: the chosen one, with `label` as its name; `choices`: none where a link sets it; `without`: the
    query without it."""

    name: str
    value: str | None
    label: str | None
    choices: Sequence[Choice]
    is_link: bool
    without: str


@dataclass(frozen=True)
class RosterList:
    """A page of a collection. `is_start`: whether the query string is empty; `problem`: why nothing was looked for;
    `notices`: about parameters that were ignored; `elsewhere`: of `find_elsewhere`; `count`: of all found records,
    of which there are more if `is_more`; `following`, `previous`: the queries of the pages beside this one."""

    kind: str
    kinds: Mapping[str, str]
    is_start: bool
    columns: Sequence[str]
    rows: Sequence[RecordRow]
    facets: Sequence[ShownFacet]
    fields: Sequence[FieldHelp]
    sorts: Sequence[str]
    sort: str
    problem: str | None
    notices: Sequence[str]
    elsewhere: KnownPerson | None
    count: int
    is_more: bool
    page: int
    following: str | None
    previous: str | None
    clients: Sequence[Client]
    versions: Sequence[str]
    rejecting: Sequence[tuple[str, int]]


def read_roster(visit: Visit) -> RosterList:
    """Reads the wanted page; that of the districts if the query string is empty."""
    query = {name: value.strip() for name, value in visit.query.items() if value.strip()}
    given = query or {"kind": "orgs", "type": "district"}
    kind = given.get("kind", "users" if "search" in given else "orgs")
    kind = kind if kind in KINDS else "users"
    resource, _, sort = KINDS[kind]
    page = visit.get_number("page", 1, MOST_OFFSET // PAGE)
    table = V1P2.records[resource].table
    chosen = {name: given[name] for name in FACETS[table] if name in given}
    found, problem = Found((), False, 0, False, {}, ()), find_problem(given)
    if problem is None:
        wanted = Wanted(
            resource=resource,
            version=V1P2,
            search=given.get("search"),
            facets=chosen,
            filter=given.get("filter"),
            sort=given.get("sort", sort),
            descending=given.get("order") == "desc",
            limit=MOST_ROWS if visit.whole else PAGE,
            offset=0 if visit.whole else (page - 1) * PAGE,
        )
        found, problem = _find(visit.connection, wanted, visit.settings)
    return RosterList(
        kind=kind,
        kinds={name: title for name, (_, title, _) in KINDS.items()},
        is_start=not query,
        columns=tuple(COLUMNS[resource]),
        rows=make_rows(visit.connection, resource, found.records),
        facets=list(_show_facets(visit.connection, table, {**given, "kind": kind}, chosen, found)),
        fields=list_fields(resource),
        sorts=list_sorts(resource),
        sort=given.get("sort", sort),
        problem=problem,
        notices=[notice.description for notice in found.notices],
        elsewhere=find_elsewhere(visit, given.get("search"), [record.sourcedId for record in found.records])
        if resource is USERS and problem is None
        else None,
        count=found.count,
        is_more=found.is_more,
        page=page,
        following=_change({**given, "kind": kind}, page=str(page + 1)) if found.more else None,
        previous=_change({**given, "kind": kind}, page=str(page - 1)) if page > 1 else None,
        clients=list_clients(visit.connection),
        versions=[version.prefix for version in VERSIONS],
        rejecting=[] if found.records or problem or "search" not in given else list_rejecting_runs(visit.connection),
    )


def _find(connection: sa.Connection, wanted: Wanted, settings: Settings) -> tuple[Found, str | None]:
    limits = Limits(settings.max_limit)
    try:
        with limit_statements(connection, LONGEST):
            return find_records(connection, wanted, limits), None
    except (RefusedRequestError, CommandError) as error:
        return Found((), False, 0, False, {}, ()), str(error)


def find_shown_person(visit: Visit, sourced_id: str) -> KnownPerson | None:
    """Returns the person with an id; None if there is nobody of whom the operator may know: who is hidden or erased is
    for those alone who may hide and erase."""
    known = find_person(visit.connection, sourced_id, visit.settings.read_secret_key())
    is_secret = known is not None and known.whereabouts in EXCLUDED and not visit.may(Verb.PERSON_HIDE)
    return None if is_secret else known


def read_whose(sent: Submission, sourced_id: str, alike: Sequence[KnownPerson]) -> str:
    """Returns the id of the person for whom a letter is: where it may be meant for somebody else, the form says for
    whom. Raises CommandError if it does not. `alike`: of `list_alike`."""
    if not alike:
        return sourced_id
    whose = sent.get("whose")
    if whose is None or whose not in {sourced_id, *(person.sourcedId for person in alike)}:
        raise CommandError("several people fit: choose for whom the letter is")
    return whose


def find_elsewhere(visit: Visit, text: str | None, found: Collection[str]) -> KnownPerson | None:
    """Returns the person whose whole id a search has, and whom the search of the roster has not found: marked as
    deleted, hidden, erased, purged, or in rejected rows alone. `found`: the ids that it has found. None as
    `find_shown_person`."""
    if not text or " " in text or text in found:
        return None
    known = find_shown_person(visit, text)
    return None if known is None or known.whereabouts is Whereabouts.ROSTER else known


def find_problem(given: Mapping[str, str]) -> str | None:
    """Why these values cannot be looked for; None if they can. The plan of the filter has its own reasons."""
    search = given.get("search")
    if search is not None and len(search) < LEAST_CHARACTERS:
        return f"type at least {LEAST_CHARACTERS} characters to search"
    if search is not None and len(search) > MOST_CHARACTERS:
        return f"a search has at most {MOST_CHARACTERS} characters"
    return None


def _show_facets(
    connection: sa.Connection, table: Any, given: Mapping[str, str], chosen: Mapping[str, str], found: Found
) -> Iterator[ShownFacet]:
    for name, facet in FACETS[table].items():
        value, counts = chosen.get(name), found.counts.get(name, {})
        words = _list_feeds(connection) if name == "feed" else facet.words
        choices = [] if facet.values is None else [Choice(word, counts.get(word)) for word in (*counts, *words)]
        unique = list({choice.value: choice for choice in choices}.values())
        label = value
        if value is not None and facet.names is not None:
            label = read_labels(connection, facet.names, [value]).get(value, value)
        yield ShownFacet(name, value, label, unique, facet.values is None, _change(given, **{name: None, "page": None}))


def _list_feeds(connection: sa.Connection) -> list[str]:
    added = sa.select(feeds.c.name).where(feeds.c.state == FeedState.ADDED)
    return list(connection.scalars(added.order_by(feeds.c.name)))


def _change(given: Mapping[str, str], **values: str | None) -> str:
    """Returns a query string with other values; None takes one out."""
    changed = {**given, **values}
    return urlencode({name: value for name, value in changed.items() if value is not None})


def list_fields(resource: Resource) -> list[FieldHelp]:
    """Returns the names that a filter of a collection may use."""
    types = make_resource_view(V1P2.records[resource], RIGHTS).filter_types
    return [FieldHelp(name, _describe(type_), EXAMPLES[type_.kind].format(name)) for name, type_ in types.items()]


def _describe(type_: FieldType) -> str:
    words = {Kind.TEXT: "text", Kind.FLAG: "true or false", Kind.INSTANT: "instant", Kind.DAY: "day"}
    return f"{words.get(type_.kind, 'list of texts')}{', any of several' if type_.many else ''}"


def list_sorts(resource: Resource) -> list[str]:
    """Returns the fields by which a collection can be sorted."""
    types = make_resource_view(V1P2.records[resource], RIGHTS).filter_types
    return [name for name in types if "*" not in name and is_sortable(name, types)]


def list_csv(content: RosterList) -> Sequence[Mapping[str, str]]:
    """Returns the rows of a page by column. A field of a dataclass could not be called `class`."""
    names = [name.lower().replace(" ", "_").replace("-", "") for name in content.columns]
    return [
        {
            "sourcedId": row.sourcedId,
            "name": row.name,
            **dict(zip(names, map(_join, row.cells), strict=True)),
            "feed": row.feed,
            "status": row.status,
        }
        for row in content.rows
    ]


def _join(cell: Sequence[Item]) -> str:
    return "; ".join(item.text for item in cell)


@dataclass(frozen=True)
class SeenRecord:
    """A record as a client gets it. `text`: its JSON."""

    sourcedId: str  # noqa: N815  (the name in OneRoster)
    name: str
    text: str


@dataclass(frozen=True)
class LookPage:
    """A page of a collection as a client gets it. `again`: the form of the next page, None after the last one."""

    view: CollectionView
    records: Sequence[SeenRecord]
    page: int
    again: Mapping[str, str] | None


def look(sent: Submission) -> Outcome:
    """Shows a page of a collection as a client gets it. The change log records it."""
    kind = sent.form.get("kind", "")
    if kind not in KINDS:
        raise CommandError("choose a collection")
    page = read_number(sent.form.get("page", ""), 1, MOST_OFFSET // LOOKED)
    with sent.change() as connection:
        view = show_collection_as(
            connection,
            sent.tools.serving,
            sent.actor,
            sent.form.get("client", ""),
            sent.form.get("version", ""),
            kind,
            sent.get("filter"),
            ((page - 1) * LOOKED, LOOKED),
            sent.settings,
        )
    resource = KINDS[kind][0]
    records = [
        SeenRecord(body["sourcedId"], name_record(resource, body), json.dumps(body, ensure_ascii=False, indent=1))
        for body in view.records
    ]
    form = {name: sent.form.get(name, "") for name in ("client", "version", "kind", "filter", "reason")}
    again = {**form, "page": str(page + 1)} if page * LOOKED < view.total else None
    return Shown("vendor_list", f"{KINDS[kind][1]} as {view.vendor} sees them", LookPage(view, records, page, again))


SCREENS = (
    Screen("roster", "/roster", "Roster", OperatorRole.VIEWER, read_roster, list_csv, "Roster", most_rows=MOST_ROWS),
)
FORMS = (Form("roster", "look", Verb.SHOW, look, None),)
