"""Reads pages and records for authorized requests: one round trip admits the caller and reads.

The reader reads a page from its ordering, where one is stored. Otherwise it finds a first page and the count in one
pass and stores only the count, because many callers read no further page. The next request for the collection makes
the ordering.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from roster_service.access.roster_state import RosterState
from roster_service.cache.orderings import Orderings
from roster_service.cache.rendered_records import list_text_sources
from roster_service.db.round_trip import Call, RoundTrips
from roster_service.db.visibility import NO_SLOT
from roster_service.errors import Problem, RefusedRequestError, make_slot_refusal
from roster_service.metrics import PAGES, TEXTS
from roster_service.query.plan import Plan, QueryShape
from roster_service.query.request import AuthorizedRequest
from roster_service.query.statements import is_narrow
from roster_service.reads.first_page import make_first_page_query
from roster_service.reads.page import Page
from roster_service.reads.read_statements import (
    STATE_STATEMENT,
    make_found_page_statement,
    make_ordered_page_statement,
    make_record_statement,
    make_shared_page_statement,
)

_STATE = Call(STATE_STATEMENT, {})


@dataclass(frozen=True)
class ReadPage:
    """A page, and the state of the roster from which it was read."""

    state: RosterState
    page: Page


@dataclass(frozen=True)
class ReadRecord:
    """The JSON text of a record (None where no visible record has the id), and the state of the roster."""

    state: RosterState
    text: str | None


class Reader:
    """Reads pages and records for the requests of one worker."""

    def __init__(self, round_trips: RoundTrips, orderings: Orderings) -> None:
        self._round_trips = round_trips
        self._orderings = orderings

    def admit(self, admission: Call) -> RosterState:
        """Admits the caller and returns the state of the roster.

        Raises RefusedRequestError (BAD_TOKEN) where the database does not admit the caller, and ThrottledRequestError
        where the vendor has too many requests at the same time.
        """
        (row,) = self._round_trips.fetch_last(admission, _STATE)
        return _read_state(row)

    def read_record(self, request: AuthorizedRequest) -> ReadRecord:
        """Reads the record that the path of the request names. Raises as `admit`."""
        shape = request.plan.shape
        for source in list_text_sources(shape):
            (row,) = self._fetch(request, Call(make_record_statement(shape, source), request.values))
            if row[4] is not None:
                break
        TEXTS.labels(source.name).inc()
        return ReadRecord(_read_state(row), row[4])

    def read_page(self, request: AuthorizedRequest) -> ReadPage:
        """Reads the requested page. Raises as `admit`."""
        plan = request.plan
        if plan.offset == 0 and is_narrow(plan):
            # Finding few records costs less than looking for their ordering.
            return self._find_page(request, sees_districts=False)
        stored = self._read_ordered(request)
        if stored.page is not None:
            PAGES.labels("ordering").inc()
            return ReadPage(stored.state, stored.page)
        if plan.offset == 0 and stored.total is None:
            found = self._find_page(request, sees_districts=stored.sees_districts)
            self._orderings.store_total(request, found.page.total)
            return found
        if self._orderings.make(request):
            stored = self._read_ordered(request)
            if stored.page is not None:
                PAGES.labels("new ordering").inc()
                return ReadPage(stored.state, stored.page)
        # The database refuses writes, or the roster changes all the time.
        return self._find_page(request, sees_districts=stored.sees_districts)

    def _read_ordered(self, request: AuthorizedRequest) -> _StoredCollection:
        plan = request.plan
        for source in list_text_sources(plan.shape):
            statement = make_ordered_page_statement(_remove_sort(plan.shape), source)
            rows = self._fetch(request, Call(statement, request.values))
            state, (total, size, sees_districts) = _read_state(rows[0]), rows[0][4:7]
            if total is None:
                return _StoredCollection(state, None, None, sees_districts)
            expected = _count_expected(plan, total)
            page = _join(rows, 7, total)
            if page.records == expected:
                TEXTS.labels(source.name).inc()
                return _StoredCollection(state, page, total, sees_districts=False)
            if not size:
                break
        return _StoredCollection(state, None, total, sees_districts=False)

    def _find_page(self, request: AuthorizedRequest, *, sees_districts: bool) -> ReadPage:
        """Reads the page without an ordering."""
        plan = request.plan
        first = make_first_page_query(plan, sees_districts=sees_districts)
        values = {**request.values, **first.values}
        for source in list_text_sources(plan.shape):
            if first.is_shared:
                statement = make_shared_page_statement(_remove_sort(plan.shape), first.found, source)
                rows = self._fetch(request, Call(statement, values))
            else:
                statement = make_found_page_statement(_remove_sort(plan.shape), first.found, source)
                rows = self._round_trips.fetch_once(request.admission, statement, values)
            state = _read_state(rows[0])
            page = _join(rows, 5, rows[0][4])
            if page.records == _count_expected(plan, page.total):
                break
        PAGES.labels("no ordering").inc()
        TEXTS.labels(source.name).inc()
        return ReadPage(state, page)

    def _fetch(self, request: AuthorizedRequest, call: Call) -> Sequence[tuple[Any, ...]]:
        return self._round_trips.fetch_last(request.admission, call)


@dataclass(frozen=True)
class _StoredCollection:
    """The stored facts of a collection.

    `total`: None where nothing is stored. `page`: None where the order is not stored. `sees_districts`: whether the
    caller sees whole districts; it is only set where `total` is None.
    """

    state: RosterState
    page: Page | None
    total: int | None
    sees_districts: bool


def _remove_sort(shape: QueryShape) -> QueryShape:
    return dataclasses.replace(shape, sort=None)


def _count_expected(plan: Plan, total: int) -> int:
    """Returns the number of records that the page must have."""
    return max(0, min(plan.limit, total - plan.offset))


def _join(rows: Sequence[tuple[Any, ...]], text: int, total: int) -> Page:
    """Returns the page of these rows. Column `text` is a JSON text or NULL, and the next one its number of records."""
    shown = [row[text : text + 2] for row in rows if row[text] is not None]
    return Page([body for body, _ in shown], sum(records for _, records in shown), total)


def _read_state(row: tuple[Any, ...]) -> RosterState:
    if row[0] == NO_SLOT:
        raise make_slot_refusal()
    if row[0] is None:
        raise RefusedRequestError(Problem.BAD_TOKEN, "the access token is no longer valid; request a new one")
    return RosterState(*row[1:4])
