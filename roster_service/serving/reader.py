"""Reads pages and records for authorized requests: one round trip admits the caller and reads.

The reader reads a page from the ordering of its pull, or else of the present roster, which it makes where none is
stored. A first page that shows a whole narrow collection, or a whole delta, needs none; nor does a count.
"""

from __future__ import annotations

import functools
import json
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from roster_service.auth.agreed_rights import NOT_AGREED
from roster_service.db.round_trip import Call, RoundTrips
from roster_service.errors import NotAgreedError, Problem, RefusedRequestError, make_slot_refusal
from roster_service.feeds.roster_state import RosterState
from roster_service.metrics import PAGES
from roster_service.roster.visibility import NO_GRANT, NO_SLOT
from roster_service.serving import pulls
from roster_service.serving.first_page import SharedSearch, make_first_page_query
from roster_service.serving.orderings import Made, Orderings
from roster_service.serving.page import Page
from roster_service.serving.plan import Plan, QueryShape
from roster_service.serving.pulls import PULL_MINUTES, Pull
from roster_service.serving.read_statements import (
    STATE_STATEMENT,
    list_forms,
    list_page_forms,
    make_collection_state_statement,
    make_found_page_statement,
    prepare_found_page,
    prepare_ordered_page,
    prepare_record,
)
from roster_service.serving.request import AuthorizedRequest
from roster_service.serving.statements import is_delta, is_narrow

# How often a page is read again because a sync has committed meanwhile, before it is read without an ordering.
ATTEMPTS = 3


@dataclass(frozen=True)
class Admitted:
    """An admitted caller. `state`: of the present roster; `visible_set`: the hash of the orgs that the caller sees, and
    of whether it sees guardians."""

    state: RosterState
    visible_set: str


@dataclass(frozen=True)
class ReadPage:
    """A page, and the state of the roster from which it was read. `visible_set`: as in `Admitted`."""

    state: RosterState
    page: Page
    visible_set: str


@dataclass(frozen=True)
class ReadRecord:
    """The JSON text of a record (None where no visible record has the id), and the state of the roster. `person`: whose
    record it is, None for a record of no person; `parts`: as in `Page`; `visible_set`: as in `Admitted`."""

    state: RosterState
    text: str | None
    person: str | None
    parts: int
    visible_set: str


@dataclass(frozen=True)
class CollectionState:
    """`shown`: the state of the roster that a page is read from; `pull`: the one that the caller is remembered with, or
    None; for a first page also one of another state. `visible_set`: as in `Admitted`."""

    shown: RosterState
    pull: Pull | None
    visible_set: str

    def is_remembered(self, minutes: int) -> bool:
        """Whether the caller is remembered with the state that is shown, for long enough. `minutes`: the time for which
        a pull is remembered at first."""
        pull = self.find_shown_pull()
        return pull is not None and pull.seconds_left > minutes * 60 * (1 - 1 / pulls.PROLONGED_PART)

    def find_shown_pull(self) -> Pull | None:
        """Returns the pull of the state that is shown, if the caller is remembered with it."""
        pull = self.pull
        return pull if pull is not None and pull.is_of_view and pull.state == self.shown else None


class Reader:
    """Reads pages and records for the requests of one worker."""

    def __init__(self, round_trips: RoundTrips, orderings: Orderings, pull_minutes: int = PULL_MINUTES) -> None:
        """`pull_minutes`: how long a pull is remembered after its last page."""
        self._round_trips = round_trips
        self._orderings = orderings
        self.pull_minutes = pull_minutes

    def admit(self, admission: Call, vendor_id: int) -> RosterState:
        """Admits the caller and returns the state of the roster, as the caller sees it.

        Raises RefusedRequestError (ENDED_TOKEN) where the database does not admit the caller, (NO_GRANT) where the
        vendor has no grant, (AGREEMENT) where its agreement lets it read nothing now, and ThrottledRequestError where
        it has too many requests at the same time.
        """
        return self.read_admitted(admission, vendor_id).state

    def read_admitted(self, admission: Call, vendor_id: int) -> Admitted:
        """Admits the caller. Raises as `admit`."""
        (row,) = self._round_trips.fetch_last(admission, Call(STATE_STATEMENT, {"vendor_id": vendor_id}))
        return Admitted(read_state(row), row.visible_set)

    def read_record(self, request: AuthorizedRequest) -> ReadRecord:
        """Reads the record that the path of the request names. Raises as `admit`."""
        shape = request.plan.shape
        for departed in list_forms(shape):
            (row,) = self._fetch(request, Call(prepare_record(shape, departed), request.values))
            state = read_state(row)
            if row.body is not None:
                break
        return ReadRecord(state, row.body, row.person, row.parts or 0, row.visible_set)

    def read_collection_state(self, request: AuthorizedRequest) -> CollectionState:
        """Admits the caller and returns the state of the roster from which the page would be read. Raises as
        `read_page`."""
        (row,) = self._fetch(request, Call(make_collection_state_statement(), request.values))
        return _read_collection_state(request, row)

    def read_page(self, request: AuthorizedRequest) -> ReadPage:
        """Reads the requested page. Raises as `admit`, and RefusedRequestError (PULL_ENDED) where the page belongs to a
        pull that cannot go on."""
        small = self._read_small(request)
        if small is not None and self._keep_pull(request, small.state, small.read.page):
            return small.read
        return self._read_count(request) or self._read_in_order(request)

    def read_present_page(self, request: AuthorizedRequest) -> ReadPage | None:
        """Reads the page if that needs no write: None where its ordering, or its count, is not stored. It begins and
        prolongs no pull. Raises as `read_page`."""
        small = self._read_small(request)
        return self._read_stored(request).found if small is None else small.read

    def read_aside(self, request: AuthorizedRequest) -> ReadPage:
        """Reads the page of the present roster, and writes nothing: it makes no ordering, and begins no pull. Raises as
        `read_page`."""
        return self.read_present_page(request) or self._find_present_page(request, sees_districts=True)

    def _read_small(self, request: AuthorizedRequest) -> _FoundPage | None:
        """Reads the first page or the count of a narrow collection, or a whole delta: to find few records costs less
        than to look for their ordering. None for any other page, and where further pages follow: then the search ends
        with the first record of these, and no text is made in vain."""
        plan = request.plan
        if plan.offset:
            return None
        if is_narrow(plan):
            found = self._find_page(request, sees_districts=False, only_whole=plan.limit > 0)
        elif plan.limit and is_delta(plan):
            found = self._find_delta(request)
        else:
            return None
        page = found.read.page
        if plan.limit and page.records != page.total:
            return None
        PAGES.labels("no ordering").inc()
        return found

    def _find_delta(self, request: AuthorizedRequest) -> _FoundPage:
        """Reads the first page of a delta, if that shows it whole. It may look at all records to find none, so a vendor
        may do so for a bounded time."""
        self._orderings.require_room(request)
        with self._orderings.measure(request):
            return self._find_page(request, sees_districts=False, only_whole=True)

    def _read_count(self, request: AuthorizedRequest) -> ReadPage | None:
        """Counts a collection, and stores the count. None for a page with records, and for a later one."""
        if request.plan.offset or request.plan.limit:
            return None
        stored = self._read_stored(request)
        if stored.found is not None:
            PAGES.labels("ordering").inc()
            return stored.found
        self._orderings.require_room(request)
        with self._orderings.measure(request):
            found = self._find_present_page(request, sees_districts=stored.sees_districts)
        self._orderings.store_total(request, found.page.total, found.state.revision, found.visible_set)
        return found

    def _read_in_order(self, request: AuthorizedRequest) -> ReadPage:
        """Reads the page from its ordering, which it makes where none is stored."""
        found_by = "ordering"
        for _ in range(ATTEMPTS):
            stored = self._read_stored(request)
            if stored.found is None:
                found_by = "new ordering"
                if self._orderings.make(request) is Made.REFUSED:
                    break
            elif self._keep_pull(request, stored.state, stored.found.page):
                PAGES.labels(found_by).inc()
                return stored.found
        # The database refuses writes, or the roster changes all the time.
        return self._find_present_page(request, sees_districts=stored.sees_districts)

    def _keep_pull(self, request: AuthorizedRequest, state: CollectionState, page: Page) -> bool:
        """Remembers the pull if further pages follow. Returns whether its ordering is still stored."""
        plan = request.plan
        is_last = plan.offset + page.records >= page.total
        # A client that asks on until a page is empty would go on in a former pull.
        is_needed = not is_last or (plan.offset == 0 and state.pull is not None)
        if plan.limit == 0 or not is_needed or state.is_remembered(self.pull_minutes):
            return True
        # A first page begins a new pull, unless the caller began the same one right before.
        pull = state.find_shown_pull() if plan.offset else None
        return self._orderings.keep(request, state.shown, pull, self.pull_minutes)

    def _read_stored(self, request: AuthorizedRequest) -> _StoredPage:
        """Reads the page from its ordering. Raises RefusedRequestError (PULL_ENDED) where that is not stored any more,
        or has records that the caller does not see any more, and the roster is of a later revision."""
        plan, shape = request.plan, _remove_sort(request.plan.shape)
        for departed in list_page_forms(shape):
            rows = self._fetch(request, Call(prepare_ordered_page(shape, departed), request.values))
            state, first = _read_collection_state(request, rows[0]), rows[0]
            if first.total is None:
                break
            page = _join(rows)
            if page.records == _count_expected(plan, first.total):
                return _StoredPage(state, ReadPage(state.shown, page, state.visible_set), sees_districts=False)
        if state.shown.later_revision is not None:
            raise pulls.refuse_ended(pulls.ORDER_IS_GONE if first.total is None else pulls.RECORD_IS_GONE)
        return _StoredPage(state, None, bool(first.sees_districts))

    def _find_present_page(self, request: AuthorizedRequest, *, sees_districts: bool) -> ReadPage:
        """Reads the page of the present roster without an ordering, whatever it costs."""
        PAGES.labels("no ordering").inc()
        return self._find_page(request, sees_districts=sees_districts).read

    def _find_page(self, request: AuthorizedRequest, *, sees_districts: bool, only_whole: bool = False) -> _FoundPage:
        """Reads the page without an ordering. `only_whole`: as for `make_first_page_query`."""
        plan = request.plan
        first = make_first_page_query(
            plan, by_feed=request.by_feed, sees_districts=sees_districts, only_whole=only_whole
        )
        values, shape = {**request.values, **first.values}, _remove_sort(plan.shape)
        if isinstance(first.search, SharedSearch):
            rows = self._fetch(request, Call(prepare_found_page(shape, first.search), values))
        else:
            statement = make_found_page_statement(shape, first.search)
            rows = self._round_trips.fetch_once(request.admission, statement, values)
        state = _read_collection_state(request, rows[0])
        return _FoundPage(state, ReadPage(read_state(rows[0]), _join(rows), rows[0].visible_set))

    def _fetch(self, request: AuthorizedRequest, call: Call) -> Sequence[Any]:
        return self._round_trips.fetch_last(request.admission, call)


@dataclass(frozen=True)
class _FoundPage:
    """A page of the present roster, read without an ordering."""

    state: CollectionState
    read: ReadPage


@dataclass(frozen=True)
class _StoredPage:
    """A page as its ordering has it. `found`: None where the order is not stored; `sees_districts`: whether the caller
    sees whole districts; it is only set where nothing is stored."""

    state: CollectionState
    found: ReadPage | None
    sees_districts: bool


def _remove_sort(shape: QueryShape) -> QueryShape:
    return QueryShape(shape.view, shape.path_filter, None, shape.descending, shape.fields)


def _count_expected(plan: Plan, total: int) -> int:
    """Returns the number of records that the page must have."""
    return max(0, min(plan.limit, total - plan.offset))


def _join(rows: Sequence[Any]) -> Page:
    """Returns the page of rows with a JSON text or NULL each."""
    shown = [row for row in rows if row.body is not None]
    people = [person for row in shown for person in (*(row.people or ()), *json.loads(f"[{row.named or ''}]"))]
    parts = functools.reduce(operator.or_, (row.parts for row in shown), 0)
    return Page([row.body for row in shown], sum(row.records for row in shown), people, parts, rows[0].total)


def _read_collection_state(request: AuthorizedRequest, row: Any) -> CollectionState:
    present = read_state(row)
    pull = pulls.read_pull(row, request, present)
    return CollectionState(present if pull is None or not request.plan.offset else pull.state, pull, row.visible_set)


def find_not_agreed(refusal: str | None) -> NotAgreedError | None:
    """Returns the refusal of a request that the database has not admitted because of an agreement; None for another
    reason, or none. `refusal`: the reason, as `admit_client` sets it."""
    said = refusal or ""
    return NotAgreedError(said.removeprefix(NOT_AGREED)) if said.startswith(NOT_AGREED) else None


def refuse_ended() -> RefusedRequestError:
    """Makes the refusal of a request that the database has not admitted because its rights have ended or changed."""
    return RefusedRequestError(Problem.ENDED_TOKEN, "the token is no longer valid; request a new one")


def read_state(row: Any) -> RosterState:
    """Returns the state of the roster that a row has. Raises as `Reader.admit`."""
    if row.visible_set == NO_SLOT:
        raise make_slot_refusal()
    if row.visible_set == NO_GRANT:
        raise RefusedRequestError(
            Problem.NO_GRANT,
            "no district or school is granted to you; this is not an empty roster, and says nothing of the records "
            "that you have",
        )
    if not_agreed := find_not_agreed(row.visible_set):
        raise not_agreed
    if row.visible_set is None:
        raise refuse_ended()
    return RosterState(row.revision, row.as_of, row.deletions_since)
