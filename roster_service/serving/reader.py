"""Reads pages and records for authorized requests: one round trip admits the caller and reads.

The reader reads a page from the ordering of its pull, or else of the present roster, which it makes where none is
stored. A first page that shows a whole narrow collection needs none; nor does a count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from roster_service.db.round_trip import Call, RoundTrips
from roster_service.errors import Problem, RefusedRequestError, make_slot_refusal
from roster_service.feeds.roster_state import RosterState
from roster_service.metrics import PAGES
from roster_service.roster.visibility import NO_GRANT, NO_SLOT
from roster_service.serving.first_page import make_first_page_query
from roster_service.serving.orderings import Made, Orderings
from roster_service.serving.page import Page
from roster_service.serving.plan import Plan, QueryShape
from roster_service.serving.pulls import (
    ORDER_IS_GONE,
    PROLONGED_PART,
    RECORD_IS_GONE,
    Pull,
    read_pull,
    refuse_ended,
)
from roster_service.serving.read_statements import (
    STATE_STATEMENT,
    make_collection_state_statement,
    make_found_page_statement,
    make_ordered_page_statement,
    make_record_statement,
    make_shared_page_statement,
)
from roster_service.serving.request import AuthorizedRequest
from roster_service.serving.statements import is_narrow

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
    record it is, None for a record of no person; `visible_set`: as in `Admitted`."""

    state: RosterState
    text: str | None
    person: str | None
    visible_set: str


@dataclass(frozen=True)
class CollectionState:
    """`shown`: the state of the roster that a page is read from; `pull`: the one that the caller is remembered with, or
    None. `visible_set`: as in `Admitted`."""

    shown: RosterState
    pull: Pull | None
    visible_set: str

    def is_remembered(self, minutes: int) -> bool:
        """Whether the caller is remembered with the state that is shown, for long enough. `minutes`: the time for which
        a pull is remembered at first."""
        pull = self.find_shown_pull()
        return pull is not None and pull.seconds_left > minutes * 60 * (1 - 1 / PROLONGED_PART)

    def find_shown_pull(self) -> Pull | None:
        """Returns the pull of the state that is shown, if the caller is remembered with it."""
        pull = self.pull
        return None if pull is None or pull.state.revision != self.shown.revision else pull


class Reader:
    """Reads pages and records for the requests of one worker."""

    def __init__(self, round_trips: RoundTrips, orderings: Orderings, pull_minutes: int) -> None:
        """`pull_minutes`: how long a pull is remembered after its last page."""
        self._round_trips = round_trips
        self._orderings = orderings
        self.pull_minutes = pull_minutes

    def admit(self, admission: Call, vendor_id: int) -> RosterState:
        """Admits the caller and returns the state of the roster, as the caller sees it.

        Raises RefusedRequestError (BAD_TOKEN) where the database does not admit the caller, (NO_GRANT) where the vendor
        has no grant, and ThrottledRequestError where it has too many requests at the same time.
        """
        return self.read_admitted(admission, vendor_id).state

    def read_admitted(self, admission: Call, vendor_id: int) -> Admitted:
        """Admits the caller. Raises as `admit`."""
        (row,) = self._round_trips.fetch_last(admission, Call(STATE_STATEMENT, {"vendor_id": vendor_id}))
        return Admitted(_read_state(row), row[0])

    def read_record(self, request: AuthorizedRequest) -> ReadRecord:
        """Reads the record that the path of the request names. Raises as `admit`."""
        (row,) = self._fetch(request, Call(make_record_statement(request.plan.shape), request.values))
        return ReadRecord(_read_state(row), row[4], row[5], row[0])

    def read_collection_state(self, request: AuthorizedRequest) -> CollectionState:
        """Admits the caller and returns the state of the roster from which the page would be read. Raises as
        `read_page`."""
        (row,) = self._fetch(request, Call(make_collection_state_statement(), request.values))
        return self._read_collection_state(request, row)

    def read_page(self, request: AuthorizedRequest) -> ReadPage:
        """Reads the requested page. Raises as `admit`, and RefusedRequestError (PULL_ENDED) where the page belongs to a
        pull that cannot go on."""
        plan = request.plan
        if plan.offset == 0 and (plan.limit == 0 or is_narrow(plan)):
            found = self._read_first(request)
            if plan.limit == 0 or found.page.records == found.page.total:
                return found
        found_by = "ordering"
        for _ in range(ATTEMPTS):
            stored = self._read_ordered(request)
            if stored.page is not None and self._keep_pull(request, stored.state, stored.page):
                PAGES.labels(found_by).inc()
                return stored.make_page(stored.page)
            if stored.page is None:
                found_by = "new ordering"
                if self._orderings.make(request) is Made.REFUSED:
                    break
        # The database refuses writes, or the roster changes all the time.
        return self._find_page(request, sees_districts=stored.sees_districts)

    def read_present_page(self, request: AuthorizedRequest) -> ReadPage | None:
        """Reads the page if that needs no write: None where its ordering, or its count, is not stored. It begins and
        prolongs no pull. Raises as `read_page`."""
        if request.plan.offset == 0 and is_narrow(request.plan):
            found = self._find_page(request, sees_districts=False)
            if request.plan.limit == 0 or found.page.records == found.page.total:
                return found
        stored = self._read_ordered(request)
        return None if stored.page is None else stored.make_page(stored.page)

    def read_aside(self, request: AuthorizedRequest) -> ReadPage:
        """Reads the page of the present roster, and writes nothing: it makes no ordering, and begins no pull. Raises as
        `read_page`."""
        return self.read_present_page(request) or self._find_page(request, sees_districts=True)

    def _read_first(self, request: AuthorizedRequest) -> ReadPage:
        """Reads a first page without making an ordering. Stores the count of a collection that is not narrow."""
        if is_narrow(request.plan):
            # Finding few records costs less than looking for their ordering.
            return self._find_page(request, sees_districts=False)
        stored = self._read_ordered(request)
        if stored.page is not None:
            PAGES.labels("ordering").inc()
            return stored.make_page(stored.page)
        self._orderings.require_room(request)
        with self._orderings.measure(request):
            found = self._find_page(request, sees_districts=stored.sees_districts)
        self._orderings.store_total(request, found.page.total)
        return found

    def _keep_pull(self, request: AuthorizedRequest, state: CollectionState, page: Page) -> bool:
        """Remembers the pull if further pages follow. Returns whether its ordering is still stored."""
        plan = request.plan
        is_last = plan.offset + page.records >= page.total
        if plan.limit == 0 or is_last or state.is_remembered(self.pull_minutes):
            return True
        # A first page begins a new pull, also where the caller is remembered with the same state.
        pull = state.find_shown_pull() if plan.offset else None
        return self._orderings.keep(request, state.shown, pull, self.pull_minutes)

    def _read_ordered(self, request: AuthorizedRequest) -> _StoredCollection:
        """Reads the page from its ordering. Raises RefusedRequestError (PULL_ENDED) where that is not stored any more,
        or has records that the caller does not see any more, and the roster is of a later revision."""
        plan = request.plan
        rows = self._fetch(request, Call(make_ordered_page_statement(_remove_sort(plan.shape)), request.values))
        state = self._read_collection_state(request, rows[0])
        total, sees_districts = rows[0][8:10]
        if total is not None:
            page = _join(rows, 10, total)
            if page.records == _count_expected(plan, total):
                return _StoredCollection(state, page, sees_districts=False)
        if state.shown.later_revision is not None:
            raise refuse_ended(ORDER_IS_GONE if total is None else RECORD_IS_GONE)
        return _StoredCollection(state, None, bool(sees_districts))

    def _read_collection_state(self, request: AuthorizedRequest, row: tuple[Any, ...]) -> CollectionState:
        present = _read_state(row)
        pull = read_pull(row[4:8], request, present)
        return CollectionState(present if pull is None or not request.plan.offset else pull.state, pull, row[0])

    def _find_page(self, request: AuthorizedRequest, *, sees_districts: bool) -> ReadPage:
        """Reads the page without an ordering."""
        plan = request.plan
        first = make_first_page_query(plan, by_feed=request.by_feed, sees_districts=sees_districts)
        values, shape = {**request.values, **first.values}, _remove_sort(plan.shape)
        if first.is_shared:
            rows = self._fetch(request, Call(make_shared_page_statement(shape, first.found), values))
        else:
            statement = make_found_page_statement(shape, first.found)
            rows = self._round_trips.fetch_once(request.admission, statement, values)
        PAGES.labels("no ordering").inc()
        return ReadPage(_read_state(rows[0]), _join(rows, 5, rows[0][4]), rows[0][0])

    def _fetch(self, request: AuthorizedRequest, call: Call) -> Sequence[tuple[Any, ...]]:
        return self._round_trips.fetch_last(request.admission, call)


@dataclass(frozen=True)
class _StoredCollection:
    """The stored facts of a collection. `page`: None where the order is not stored. `sees_districts`: whether the
    caller sees whole districts; it is only set where nothing is stored."""

    state: CollectionState
    page: Page | None
    sees_districts: bool

    def make_page(self, page: Page) -> ReadPage:
        """Returns the page as it was read from this collection."""
        return ReadPage(self.state.shown, page, self.state.visible_set)


def _remove_sort(shape: QueryShape) -> QueryShape:
    return QueryShape(shape.view, shape.path_filter, None, shape.descending, shape.fields)


def _count_expected(plan: Plan, total: int) -> int:
    """Returns the number of records that the page must have."""
    return max(0, min(plan.limit, total - plan.offset))


def _join(rows: Sequence[tuple[Any, ...]], text: int, total: int) -> Page:
    """Returns the page of these rows. Column `text` is a JSON text or NULL; the next ones are its number of records,
    and the people whose records they are."""
    shown = [row[text : text + 3] for row in rows if row[text] is not None]
    people = [person for _, _, some in shown for person in some or ()]
    return Page([body for body, _, _ in shown], sum(records for _, records, _ in shown), people, total)


def _read_state(row: tuple[Any, ...]) -> RosterState:
    if row[0] == NO_SLOT:
        raise make_slot_refusal()
    if row[0] == NO_GRANT:
        raise RefusedRequestError(
            Problem.NO_GRANT,
            "no district or school is granted to you; this is not an empty roster, and says nothing of the records "
            "that you have",
        )
    if row[0] is None:
        raise RefusedRequestError(Problem.BAD_TOKEN, "the access token is no longer valid; request a new one")
    return RosterState(*row[1:4])
