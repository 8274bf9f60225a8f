"""Orderings: the sorted ids of a collection, stored once for each revision.

All workers, and all vendors with the same visible orgs, share an ordering. A page therefore costs the same at any
offset, and its count costs nothing. Only a sync or a purge changes the roster, so an ordering is valid for its whole
revision.
"""

from __future__ import annotations

import logging
import threading
from enum import Enum

from sqlalchemy import Connection, Engine, delete, func, select, update
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import SQLAlchemyError

from roster_service.access.roster_state import RosterState
from roster_service.cache.ordering_statements import make_ordering_statement
from roster_service.cache.pulls import make_pull_row
from roster_service.db.tables import ordering_chunks, orderings, roster_state
from roster_service.db.visibility import read_visible_set, select_whole_districts
from roster_service.errors import make_slot_refusal
from roster_service.query.request import AuthorizedRequest

# How many orderings, and how many bytes of chunks, a worker adds before it evicts orderings beyond the bounds.
UNCHECKED_ORDERINGS = 100
UNCHECKED_BYTES = 2**20
# The most orderings of all vendors together; one vendor may have half of them.
MAX_ORDERINGS = 10_000

_log = logging.getLogger(__name__)


class Made(Enum):
    """The end of an attempt to make an ordering."""

    STORED = "the ordering is stored, by this worker or another one"
    OUTDATED = "a sync has committed meanwhile"
    REFUSED = "the database refuses the writes"


class Orderings:
    """Makes the orderings of one worker and stores them."""

    def __init__(self, engine: Engine, megabytes: int) -> None:
        """`engine`: of the serving role, with the right to write (`make_ordering_engine`). `megabytes`: the most that
        all orderings together may take; those of one vendor may take half of it."""
        self._engine = engine
        self._most_bytes = megabytes * 10**6
        self._lock = threading.Lock()
        # Starts at the bound, so that the first ordering already evicts those of older revisions.
        self._unchecked_orderings = UNCHECKED_ORDERINGS
        self._unchecked_bytes = 0

    def store_total(self, request: AuthorizedRequest, total: int) -> None:
        """Stores the count of a collection, without its order, for every worker. A database failure is only logged."""
        try:
            with self._engine.begin() as connection:
                if _admit(connection, request):
                    connection.execute(_make_row(request, total).on_conflict_do_nothing())
                    self._evict_when_due(connection, 0)
        except SQLAlchemyError as error:
            _report(error)

    def make(self, request: AuthorizedRequest) -> Made:
        """Makes the ordering of the request's collection, unless another worker has made it.

        Raises ThrottledRequestError where the vendor has too many requests at the same time.
        """
        try:
            with self._engine.connect() as connection, connection.begin() as transaction:
                # Of all workers that want this ordering now, one makes it. The others wait for the lock and find it.
                lock = int.from_bytes(request.query_hash[:8], signed=True)
                connection.execute(select(func.pg_advisory_xact_lock(lock)))
                if _admit(connection, request) is None:
                    raise make_slot_refusal()
                if not self._make(connection, request):
                    transaction.rollback()
                    return Made.OUTDATED
        except SQLAlchemyError as error:
            _report(error)
            return Made.REFUSED
        return Made.STORED

    def keep(self, request: AuthorizedRequest, state: RosterState, pull_minutes: int) -> bool:
        """Begins or prolongs the pull of the request, whose page was read from the ordering of `state`.

        Returns whether that ordering is still stored; True, with a line in the log, if the database refuses the write:
        then a later page may be of a later revision. Raises ThrottledRequestError as `make`.
        """
        try:
            with self._engine.begin() as connection:
                admitted = _admit(connection, request)
                if admitted is None:
                    raise make_slot_refusal()
                # Without an admission, no ordering is visible. The next request finds out that the token has ended.
                row = make_pull_row(request, state, pull_minutes)
                return not admitted or connection.scalar(row) is not None
        except SQLAlchemyError as error:
            _report(error)
            return True

    def _make(self, connection: Connection, request: AuthorizedRequest) -> bool:
        claim = _make_row(request, 0).on_conflict_do_update(
            index_elements=[orderings.c.query, orderings.c.visible_set, orderings.c.revision],
            set_={"made_at": func.now()},
        )
        found = connection.execute(claim.returning(orderings.c.id, orderings.c.revision, orderings.c.bytes)).one()
        if found.bytes:
            return True
        sees_districts = connection.scalar(select(select_whole_districts().exists()), request.values) or False
        connection.execute(delete(ordering_chunks).where(ordering_chunks.c.ordering_id == found.id))
        statement = make_ordering_statement(request.plan, sees_districts=sees_districts)
        made = connection.execute(statement, {**request.values, "ordering_id": found.id}).one()
        if made.revision != found.revision:
            return False
        values = {"total": made.total, "bytes": made.bytes}
        connection.execute(update(orderings).where(orderings.c.id == found.id).values(values))
        self._evict_when_due(connection, made.bytes)
        return True

    def _evict_when_due(self, connection: Connection, size: int) -> None:
        """Evicts orderings once enough were added since the last time. `size`: bytes of the new ordering."""
        with self._lock:
            self._unchecked_orderings += 1
            self._unchecked_bytes += size
            if self._unchecked_orderings < UNCHECKED_ORDERINGS and self._unchecked_bytes < UNCHECKED_BYTES:
                return
            self._unchecked_orderings = self._unchecked_bytes = 0
        evict_orderings(connection, self._most_bytes)


def evict_orderings(connection: Connection, most_bytes: int) -> None:
    """Removes the orderings of older revisions and, beyond the bounds, the oldest ones of the vendors that have most.

    A vendor within its even share of the bounds loses none, and the newest ordering of each vendor stays. The call does
    nothing while another worker evicts.
    `most_bytes`: the bound for all orderings together.
    """
    connection.execute(select(func.evict_orderings(most_bytes, MAX_ORDERINGS)))


def _admit(connection: Connection, request: AuthorizedRequest) -> bool | None:
    """Returns whether the database admits the caller; None if the vendor has too many requests at the same time."""
    admitted: bool | None = connection.scalar(request.admission.statement, request.admission.values)
    return admitted


def _make_row(request: AuthorizedRequest, total: int) -> postgresql.Insert:
    """Returns the INSERT of an ordering whose ids are not stored yet. Without an admission it violates a constraint."""
    revision = select(roster_state.c.revision).scalar_subquery()
    row = {"query": request.query_hash, "visible_set": read_visible_set(), "revision": revision}
    return insert(orderings).values(**row, vendor_id=request.vendor_id, total=total, bytes=0)


def _report(error: SQLAlchemyError) -> None:
    """Logs the failure: without orderings, pages are correct but slow, and the operator has to know."""
    _log.warning(
        "orderings cannot be stored, so every request counts and sorts its collection: %s", type(error).__name__
    )
