"""The search box of every page: people, classes, schools, vendors, clients, feeds, checks of data quality, runs and
requests by one text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from roster_service.access_log.causes import NOTHING_FOUND
from roster_service.access_log.reports import AccessLogFilter, read_access_log, read_refused
from roster_service.accounts.clients import list_clients
from roster_service.accounts.vendors import list_vendors
from roster_service.change_log.actors import OperatorRole
from roster_service.console.filters import to_counted, to_segment
from roster_service.console.record_cells import make_rows
from roster_service.console.screen import Screen
from roster_service.console.views.roster import find_elsewhere, find_problem
from roster_service.console.visit import Visit
from roster_service.db.folding import split_name
from roster_service.db.instants import describe_instant
from roster_service.db.tables import NOBODY
from roster_service.errors import CommandError
from roster_service.explore.whole_roster import find_named
from roster_service.feeds.feeds import list_feeds
from roster_service.feeds.quality_checks import CHECKS
from roster_service.feeds.run_history import find_run
from roster_service.schemas.versions import CLASSES, ORGS, USERS, V1P2, Resource

# The results of a group.
MOST = 8
# The ids that requests have are longer than most names, and have a digit.
_REQUEST_ID = re.compile(r"(?=.*\d)[A-Za-z0-9][A-Za-z0-9._-]{7,63}")
_RUN = re.compile(r"(?:run )?0*(\d{1,9})", re.IGNORECASE)
# The groups of records: the collection, and the facets of the list that has all of them.
_RECORDS: Mapping[str, tuple[Resource, Mapping[str, str]]] = {
    "People": (USERS, {}),
    "Classes": (CLASSES, {}),
    "Schools": (ORGS, {"type": "school"}),
    "Districts": (ORGS, {"type": "district"}),
}


@dataclass(frozen=True)
class Result:
    """A thing that was found. `detail`: what tells it from others of its name; `path`: below `/console`; `leaked`: of
    a client, the path of the form that ends its secret at once."""

    text: str
    detail: str
    path: str
    leaked: str | None = None


@dataclass(frozen=True)
class ResultGroup:
    """The results of one kind. `more`: the path of the list with all of them, None if these are all."""

    title: str
    results: Sequence[Result]
    more: str | None


@dataclass(frozen=True)
class FindPage:
    """What a text names. `problem`: why nothing was looked for."""

    text: str
    groups: Sequence[ResultGroup]
    problem: str | None


def read_found(visit: Visit) -> FindPage:
    """Reads all that the typed text names, by kind; kinds without a result are left out."""
    text = " ".join((visit.get("q") or "").split())
    problem = find_problem({"search": text}) if text and not _RUN.fullmatch(text) else None
    if not text or problem is not None:
        return FindPage(text, (), problem)
    groups = (group for make in (_list_records, _list_others) for group in make(visit, text))
    return FindPage(text, [group for group in groups if group.results], None)


def _list_records(visit: Visit, text: str) -> Iterator[ResultGroup]:
    if len(text) < 2:
        return
    for title, (resource, facets) in _RECORDS.items():
        found, is_more = find_named(visit.connection, resource, V1P2, text, facets, MOST)
        results = [
            Result(
                row.name,
                ", ".join(part.text for cell in row.cells[:3] for part in cell[:2]),
                f"/records/{to_segment(row.sourcedId)}",
            )
            for row in make_rows(visit.connection, resource, found)
        ]
        elsewhere = find_elsewhere(visit, text, [record.sourcedId for record in found]) if resource is USERS else None
        if elsewhere is not None:
            own = Result(text, f"{elsewhere.whereabouts}", f"/records/{to_segment(text)}")
            results.insert(0, own)
        kind = {USERS: "users", CLASSES: "classes", ORGS: "orgs"}[resource]
        query = urlencode({"kind": kind, **facets, "search": text, "status": "active"})
        yield ResultGroup(title, results, f"/roster?{query}" if is_more else None)


def _list_others(visit: Visit, text: str) -> Iterator[ResultGroup]:
    words = split_name(text)

    vendors = list_vendors(visit.connection)
    numbers = {vendor.email: vendor.id for vendor in vendors}
    listed = {
        "Vendors": [Result(one.name, one.email, f"/vendors/{one.id}") for one in vendors],
        "Clients": [
            Result(one.name, f"client of {one.vendor}, {one.client_id}", path, f"{path}?leaked={one.client_id}#leaked")
            for one in list_clients(visit.connection)
            for path in (f"/vendors/{numbers[one.vendor]}/credentials",)
        ],
        "Feeds": [
            Result(one.name, f"feed, {one.format}", f"/feeds/{to_segment(one.name)}")
            for one in list_feeds(visit.connection, visit.settings.time_zone, without_records=True)
        ],
        "Checks": [
            Result(one.title, "duplicates" if one.is_pairs else "check of data quality", f"/quality/{one.name}")
            for one in CHECKS
        ],
    }
    for title, results in listed.items():
        named = [result for result in results if _is_named(result, words)]
        more = {"Feeds": "/feeds", "Checks": "/quality"}.get(title, "/vendors")
        yield ResultGroup(title, named[:MOST], more if len(named) > MOST else None)
    yield ResultGroup("Runs", list(_find_run(visit, text)), None)
    yield ResultGroup("Requests", list(_find_request(visit, text)), None)


def _is_named(result: Result, words: Sequence[str]) -> bool:
    """Whether each word begins a word of a result, as the search for people has it."""
    own = split_name(f"{result.text} {result.detail}")
    return bool(words) and all(any(one.startswith(word) for one in own) for word in words)


def _find_run(visit: Visit, text: str) -> Iterator[Result]:
    number = _RUN.fullmatch(text)
    if number is not None:
        try:
            run = find_run(visit.connection, int(number[1]))
        except CommandError:
            return
        began = describe_instant(run.started, visit.settings.time_zone)
        yield Result(f"Run {run.run}", f"{run.feed}, {run.outcome}, {began}", f"/runs/{run.run}")


def _find_request(visit: Visit, text: str) -> Iterator[Result]:
    if _REQUEST_ID.fullmatch(text):
        for row in read_access_log(visit.connection, AccessLogFilter(request=text), (0, MOST)):
            at = describe_instant(row.at, visit.settings.time_zone)
            detail = f"{row.vendor}, {at}, {to_counted(row.records, 'record')}"
            yield Result(f"{row.method} {row.path}", detail, f"/disclosures?{urlencode({'request': text})}")
        for refused in read_refused(visit.connection, None, None, text):
            outcome = "answered" if refused.cause == NOTHING_FOUND else "refused"
            detail = f"{refused.vendor}, {outcome}: {refused.status} {refused.cause}"
            own = f"/vendors/{refused.vendor_id}/requests"
            page = "/disclosures/usage#refused" if refused.vendor_id == NOBODY else own
            yield Result(refused.endpoint, detail, page)


SCREENS = (Screen("find", "/find", "Search", OperatorRole.VIEWER, read_found, None, None),)
