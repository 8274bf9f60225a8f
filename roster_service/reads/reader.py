"""Reads what an authorized request asks for: one message admits the caller, and gives what it found.

A page is read from its ordering, where one is kept. A first page that is not kept is found in one pass together with
its count, and nothing is written but the count: many callers go no further. Who asks for more has the ordering made.
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
from roster_service.errors import Problem, RefusedRequestError
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
    """A page, and the state of the roster that it was read from."""

    state: RosterState
    page: Page


@dataclass(frozen=True)
class ReadRecord:
    """The JSON text of a record, None where there is none that the caller may see, and the state of the roster."""

    state: RosterState
    text: str | None


class Reader:
    """Reads for the callers of one worker."""

    def __init__(self, round_trips: RoundTrips, orderings: Orderings) -> None:
        self._round_trips = round_trips
        self._orderings = orderings

    def admit(self, admission: Call) -> RosterState:
        """The state of the roster, for a caller who is admitted. Raises RefusedRequestError (BAD_TOKEN) for others."""
        (row,) = self._round_trips.fetch_last(admission, _STATE)
        return _read_state(row)

    def read_record(self, request: AuthorizedRequest) -> ReadRecord:
        """The record that the path of the request names. Raises as `admit`."""
        shape = request.plan.shape
        for source in list_text_sources(shape):
            (row,) = self._fetch(request, Call(make_record_statement(shape, source), request.values))
            if row[4] is not None:
                break
        return ReadRecord(_read_state(row), row[4])

    def read_page(self, request: AuthorizedRequest) -> ReadPage:
        """The page that the request asks for. Raises as `admit`."""
        plan = request.plan
        if plan.offset == 0 and is_narrow(plan):
            # Finding few records costs less than asking whether their order is kept.
            return self._find(request, sees_districts=False)
        known = self._read_ordered(request)
        if known.page is not None:
            return ReadPage(known.state, known.page)
        if plan.offset == 0 and known.total is None:
            found = self._find(request, sees_districts=known.sees_districts)
            self._orderings.store_total(request, found.page.total)
            return found
        if self._orderings.make(request):
            known = self._read_ordered(request)
            if known.page is not None:
                return ReadPage(known.state, known.page)
        # The database takes no writes, or the roster changes all the time.
        return self._find(request, sees_districts=known.sees_districts)

    def _read_ordered(self, request: AuthorizedRequest) -> _Ordered:
        plan = request.plan
        for source in list_text_sources(plan.shape):
            statement = make_ordered_page_statement(_without_sort(plan.shape), source)
            rows = self._fetch(request, Call(statement, request.values))
            state, (total, size, sees_districts) = _read_state(rows[0]), rows[0][4:7]
            if total is None:
                return _Ordered(state, None, None, sees_districts)
            expected = _count_expected(plan, total)
            page = _join(rows, 7, total)
            if page.records == expected:
                return _Ordered(state, page, total, sees_districts=False)
            if not size:
                break
        return _Ordered(state, None, total, sees_districts=False)

    def _find(self, request: AuthorizedRequest, *, sees_districts: bool) -> ReadPage:
        """The page without an ordering."""
        plan = request.plan
        first = make_first_page_query(plan, sees_districts=sees_districts)
        values = {**request.values, **first.values}
        for source in list_text_sources(plan.shape):
            if first.is_kept:
                statement = make_shared_page_statement(_without_sort(plan.shape), first.found, source)
                rows = self._fetch(request, Call(statement, values))
            else:
                statement = make_found_page_statement(_without_sort(plan.shape), first.found, source)
                rows = self._round_trips.fetch_once(request.admission, statement, values)
            state = _read_state(rows[0])
            page = _join(rows, 5, rows[0][4])
            if page.records == _count_expected(plan, page.total):
                break
        return ReadPage(state, page)

    def _fetch(self, request: AuthorizedRequest, call: Call) -> Sequence[tuple[Any, ...]]:
        return self._round_trips.fetch_last(request.admission, call)


@dataclass(frozen=True)
class _Ordered:
    """What is known of a collection: its total, the page where its order is kept, and whether the caller sees whole
    districts where nothing is known."""

    state: RosterState
    page: Page | None
    total: int | None
    sees_districts: bool


def _without_sort(shape: QueryShape) -> QueryShape:
    return dataclasses.replace(shape, sort=None)


def _count_expected(plan: Plan, total: int) -> int:
    """How many records the page has."""
    return max(0, min(plan.limit, total - plan.offset))


def _join(rows: Sequence[tuple[Any, ...]], text: int, total: int) -> Page:
    """The page of rows whose columns `text` and the next one are a JSON text and its number of records, or NULL."""
    shown = [row[text : text + 2] for row in rows if row[text] is not None]
    return Page([body for body, _ in shown], sum(records for _, records in shown), total)


def _read_state(row: tuple[Any, ...]) -> RosterState:
    if row[0] is None:
        raise RefusedRequestError(Problem.BAD_TOKEN, "the access token is no longer valid; get a new one")
    return RosterState(*row[1:4])
