"""Orderings: the sorted ids of a collection, stored once for each revision.

All workers, and all vendors with the same visible orgs, share an ordering. A page therefore costs the same at any
offset, and its count costs nothing. Only a sync or a purge changes the roster, so an ordering is valid for its whole
revision. A whole collection has one for each feed, of the revision of that feed: after a sync of one feed, those of all
others are still valid.
"""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from enum import Enum
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import SQLAlchemyError

from roster_service.auth.throttling.throttles import OrderingThrottle
from roster_service.db.prepared_statements import PreparedStatement, Statement, fetch_rows
from roster_service.db.tables import CText, orderings
from roster_service.errors import make_slot_refusal
from roster_service.feeds.roster_state import RosterState
from roster_service.roster.visibility import VENDOR, select_whole_districts
from roster_service.serving.ordering_statements import QUERY, make_ordering_query, select_changed, select_parts
from roster_service.serving.pulls import Pull, bind_pull, make_pull_row, prolong_pull
from roster_service.serving.request import AuthorizedRequest

# How many orderings, and how many bytes of chunks, a worker adds before it evicts orderings beyond the bounds.
UNCHECKED_ORDERINGS = 100
UNCHECKED_BYTES = 2**20
# The most orderings of all vendors together, those of the feeds of one collection counted as one; one vendor may have
# half of them.
MAX_ORDERINGS = 10_000

_LOCK = sa.text("SELECT pg_advisory_xact_lock(:lock)")

_log = logging.getLogger(__name__)


class Made(Enum):
    """The end of an attempt to make an ordering."""

    STORED = "the ordering is stored, by this worker or another one"
    OUTDATED = "a sync has committed meanwhile"
    REFUSED = "the database refuses the writes"


class Orderings:
    """Makes the orderings of one worker and stores them."""

    def __init__(self, engine: sa.Engine, megabytes: int, throttle: OrderingThrottle | None = None) -> None:
        """`engine`: of the serving role, with the right to write (`make_ordering_engine`). `megabytes`: the most that
        all orderings together may take; those of one vendor may take half of it. `throttle`: None for no bound on the
        work for a vendor."""
        self._engine = engine
        self._throttle = throttle
        self._most_bytes = megabytes * 10**6
        self._lock = threading.Lock()
        # Starts at the bound, so that the first ordering already evicts those of older revisions.
        self._unchecked_orderings = UNCHECKED_ORDERINGS
        self._unchecked_bytes = 0

    def require_room(self, request: AuthorizedRequest) -> None:
        """Raises ThrottledRequestError if new filters and sorts of the vendor have taken too much of the database."""
        if self._throttle is not None and _is_invented(request):
            self._throttle.require_room(request.vendor_id)

    def measure(self, request: AuthorizedRequest) -> AbstractContextManager[None]:
        """Counts the time of the block as work for a new ordering or count of the vendor."""
        if self._throttle is None or not _is_invented(request):
            return nullcontext()
        return self._throttle.measure(request.vendor_id)

    def store_total(self, request: AuthorizedRequest, total: int, revision: int, visible_set: str) -> None:
        """Stores the count of a collection, without its order, for every worker. A database failure is only logged.

        `revision`, `visible_set`: of the roster that was counted. It stores nothing if they are not the present ones: a
        sync has committed meanwhile.
        """
        counted = {"claimed_total": total, "counted_revision": revision, "counted_set": visible_set}
        try:
            with self._engine.begin() as connection:
                if _admit(connection, request):
                    fetch_rows(connection, _make_total_claim(), {**request.values, **counted})
                    self._evict_when_due(connection, 1, 0)
        except SQLAlchemyError as error:
            _report(error)

    def make(self, request: AuthorizedRequest) -> Made:
        """Makes the orderings of the request's collection that are not stored yet.

        Raises ThrottledRequestError where the vendor has too many requests at the same time, and as `require_room`.
        """
        self.require_room(request)
        try:
            with self._engine.connect() as connection, connection.begin() as transaction:
                # Of all workers that want these orderings now, one makes them. The others wait for the lock and find
                # them.
                lock = int.from_bytes(request.query_hash[:8], signed=True)
                fetch_rows(connection, _LOCK, {"lock": lock})
                if _admit(connection, request) is None:
                    raise make_slot_refusal()
                if not self._make(connection, request):
                    transaction.rollback()
                    return Made.OUTDATED
        except SQLAlchemyError as error:
            _report(error)
            return Made.REFUSED
        return Made.STORED

    def keep(self, request: AuthorizedRequest, state: RosterState, pull: Pull | None, pull_minutes: int) -> bool:
        """Begins or prolongs the pull of the request, whose page was read from the orderings of `state`. `pull`: the
        one that goes on; None: a new one.

        Returns whether these orderings are still stored, and the caller still sees what it saw; True, with a line in
        the log, if the database refuses the write: then a later page may be of a later revision. Raises
        ThrottledRequestError as `make`.
        """
        try:
            with self._engine.begin() as connection:
                admitted = _admit(connection, request)
                if admitted is None:
                    raise make_slot_refusal()
                row = make_pull_row() if pull is None else prolong_pull()
                values = {**request.values, **bind_pull(state, pull_minutes)}
                # Without an admission, no row is visible: the page is read again, and the token has ended.
                return bool(fetch_rows(connection, row, values))
        except SQLAlchemyError as error:
            _report(error)
            return True

    def _make(self, connection: sa.Connection, request: AuthorizedRequest) -> bool:
        claimed = fetch_rows(connection, _make_ordering_claim(), {**request.values, "claimed_total": 0})
        missing = [row for row in claimed if row.bytes is None]
        if not missing:
            return True
        # Where a sync of some feeds has left the orderings of the others, the feed decides which rows are read, and not
        # how much the caller sees.
        sees_districts = len(missing) == len(claimed) and missing[0].sees_districts
        query = make_ordering_query(request.plan, by_feed=request.by_feed, sees_districts=sees_districts)
        feeds = {"ordering_ids": [row.id for row in missing], "ordering_feeds": [row.feed_id for row in missing]}
        # Only what is shared may fill a cache of texts.
        values = {**request.values, **query.values, **feeds}
        with self.measure(request):
            if isinstance(query.statement, PreparedStatement):
                made = fetch_rows(connection, query.statement, values)
            else:
                made = _fetch_once(connection, query.statement, values)
        if not all(row.is_present for row in made):
            return False
        self._evict_when_due(connection, len(made), sum(row.bytes for row in made))
        return True

    def _evict_when_due(self, connection: sa.Connection, number: int, size: int) -> None:
        """Evicts orderings once enough were added since the last time. `number`, `size`: of the new orderings, with the
        size in bytes."""
        with self._lock:
            self._unchecked_orderings += number
            self._unchecked_bytes += size
            if self._unchecked_orderings < UNCHECKED_ORDERINGS and self._unchecked_bytes < UNCHECKED_BYTES:
                return
            self._unchecked_orderings = self._unchecked_bytes = 0
        evict_orderings(connection, self._most_bytes)


def evict_orderings(connection: sa.Connection, most_bytes: int) -> None:
    """Removes the orderings of older revisions and, beyond the bounds, the oldest ones of the vendors that have most.

    A vendor within its even share of the bounds loses none, and the newest ordering of each vendor stays. The call does
    nothing while another worker evicts.
    `most_bytes`: the bound for all orderings together.
    """
    connection.execute(sa.select(sa.func.evict_orderings(most_bytes, MAX_ORDERINGS)))


def _admit(connection: sa.Connection, request: AuthorizedRequest) -> bool | None:
    """Returns whether the database admits the caller; None if the vendor has too many requests at the same time."""
    rows = fetch_rows(connection, request.admission.statement, request.admission.values)
    # An API key that has ended has no row.
    admitted: bool | None = rows[0][0] if rows else False
    return admitted


def _is_invented(request: AuthorizedRequest) -> bool:
    """Returns whether a vendor can have any number of such collections: there are few whole ones, as the SIS has them,
    and few of the records of a path."""
    plan = request.plan
    return plan.filter is not None or plan.shape.sort is not None or bool(request.path_values)


def _fetch_once(connection: sa.Connection, statement: Statement, values: Mapping[str, Any]) -> Sequence[sa.Row[Any]]:
    # Bound before: SQLAlchemy takes the names of values that are given with a statement for columns of its UPDATE.
    return connection.execute(statement.params(**values)).all()


@functools.cache
def _make_total_claim() -> sa.Select[Any]:
    """Returns the statement that stores the row of the caller's ordering with its number of ids alone, if the revision
    and the visible set are those that were counted. (A count is one of all feeds, so it has one row.)"""
    part = select_parts().subquery("part")
    is_counted = sa.and_(
        part.c.revision == sa.bindparam("counted_revision", type_=sa.BigInteger),
        part.c.visible_set == sa.bindparam("counted_set", type_=CText),
    )
    return select_changed(_make_claim(part, is_counted).on_conflict_do_nothing().returning(orderings.c.id))


@functools.cache
def _make_ordering_claim() -> sa.Select[Any]:
    """Returns the statement that gives the rows of the caller's orderings, which it stores if they are not there; of
    each: `id`, `feed_id`, `bytes`, NULL where its ids are not stored, and whether the caller sees whole districts."""
    claim = _make_claim(select_parts().subquery("part")).on_conflict_do_update(
        index_elements=[orderings.c.query, orderings.c.feed_id, orderings.c.visible_set, orderings.c.revision],
        set_={"made_at": sa.func.now()},
    )
    claimed = select_changed(claim.returning(orderings.c.id, orderings.c.feed_id, orderings.c.bytes))
    return claimed.add_columns(select_whole_districts().exists().label("sees_districts"))


def _make_claim(part: sa.FromClause, *conditions: sa.ColumnElement[bool]) -> postgresql.Insert:
    """Returns the INSERT of the rows of the caller's orderings, whose ids are not stored yet. Without an admission
    there are none. `part`: of `select_parts`; `conditions`: on its rows."""
    values: dict[str, sa.ColumnElement[Any]] = {
        "query": QUERY,
        "feed_id": part.c.feed_id,
        "visible_set": part.c.visible_set,
        "revision": part.c.revision,
        "vendor_id": VENDOR,
        "total": sa.bindparam("claimed_total", type_=sa.BigInteger),
    }
    return insert(orderings).from_select(list(values), sa.select(*values.values()).where(*conditions))


def _report(error: SQLAlchemyError) -> None:
    """Logs the failure: without orderings, pages are correct but slow, and the operator has to know."""
    _log.warning(
        "orderings cannot be stored, so every request counts and sorts its collection: %s", type(error).__name__
    )
