"""Walks: the order of a collection, made once for each roster and shared by all workers, so that a page costs the
same at any depth and its count costs nothing.

A walk is all that decides which records a collection has and in which order: the roster's state, the caller's rights,
the path, the filter and the sort. A roster changes by a sync alone, so what was found once holds until the next one.
Its ids lie in the database in chunks; each worker remembers of the walks it met lately how many records they have.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, delete, func, select, update
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import SQLAlchemyError

from roster_service.access.roster_state import RosterState
from roster_service.db.walk_tables import walk_chunks, walks
from roster_service.query.plan import Outline, Plan
from roster_service.query.shelving import Shelving
from roster_service.query.statements import KEPT, Reach
from roster_service.query.walk_eviction import Bounds, evict
from roster_service.query.walk_statements import forward, keeping_statement, places, window_statement

# How many walks a worker remembers; each takes a few hundred bytes.
REMEMBERED = 4096
# A walk that is in use says so this often.
TOUCH_SECONDS = 60
# What a worker may add before it looks whether something has to go.
UNCHECKED_WALKS = 100
UNCHECKED_BYTES = 2**20

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Walk:
    """A collection in its order. `values`: what its statements are bound to; `reach`: its caller's."""

    key: bytes
    plan: Plan
    values: Mapping[str, Any]
    state: RosterState
    reach: Reach


@dataclass(frozen=True)
class Known:
    """What is known of a walk: how many records it has, and whether its ids are kept."""

    total: int
    is_kept: bool


@dataclass(frozen=True)
class Window:
    """The ids of a page, in ascending order, and how many records there are on all pages."""

    ids: tuple[str, ...]
    total: int


def make_walk(plan: Plan, values: Mapping[str, Any], state: RosterState, opening: str, *, everyone: bool) -> Walk:
    """The walk that a plan's page is a part of. `values`: what the plan's statements are bound to; `opening`: what
    row-level security was told. Both locks count: with either of them open, nobody gets another one's walk. `everyone`:
    whether every user is known to be open to the caller, which decides how the walk is found, and not what is in it."""
    outline = forward(plan.outline)
    # Who only counts asks for no order.
    outline = outline if plan.limit else dataclasses.replace(outline, sort=None)
    asked = {name: sorted(value) if isinstance(value, list) else value for name, value in values.items()}
    # It stands in the records, and decides nothing.
    asked.pop("base_url", None)
    facts = (state, opening, _describe(outline), _describe_filter(plan), sorted(asked.items()))
    reach = Reach.EVERYONE if everyone else Reach.DISTRICTS if values["caller_districts"] else Reach.SCHOOLS
    return Walk(hashlib.sha256(repr(facts).encode()).digest(), plan, values, state, reach)


@functools.lru_cache(KEPT)
def _describe(outline: Outline) -> bytes:
    """A hash of the statement without a filter, which says everything of an outline; nothing that changes it can be
    forgotten."""
    plan = Plan(outline, path_ids=(), filter=None, limit=0, offset=0, notices=())
    compiled = places(plan, Reach.SCHOOLS).compile(dialect=postgresql.dialect())  # type: ignore[no-untyped-call]
    return hashlib.sha256(repr((str(compiled), sorted(compiled.params.items()))).encode()).digest()


def _describe_filter(plan: Plan) -> object:
    """The filter as it was typed, and what decides which values it is held against: its SQL follows from these."""
    if plan.filter is None:
        return None
    view = plan.outline.view
    metadata = sorted(kind.value for kind in view.sight.metadata)
    return plan.filter, view.record.__module__, view.record.__qualname__, view.sight.guardians, metadata


def find_places(plan: Plan, total: int) -> tuple[int, int]:
    """The places of a page in its walk, (first, one past the last); both are the same where the page is empty."""
    begin, end = min(plan.offset, total), min(plan.offset + plan.limit, total)
    return (total - end, total - begin) if plan.outline.descending else (begin, end)


class Walks:
    """The walks that are kept, as one worker sees them."""

    def __init__(self, engine: Engine, megabytes: int, shelving: Shelving | None = None) -> None:
        """`engine`: it may write (`make_walking_engine`). `megabytes`: what all walks together may take. `shelving`:
        is told what is walked; None: nobody is."""
        self._engine = engine
        self._shelving = shelving
        self._bounds = Bounds.of(megabytes)
        self._lock = threading.Lock()
        self._remembered: OrderedDict[bytes, Known] = OrderedDict()
        self._touched: dict[bytes, float] = {}
        # The newest roster that this worker has made room for.
        self._revision = -1
        self._unchecked_walks = 0
        self._unchecked_bytes = 0

    def find(self, connection: Connection, walk: Walk) -> Known | None:
        """What is known of a walk, here or in the database as `connection` sees it."""
        known = self.recall(walk)
        if known is None:
            wanted = select(walks.c.total, walks.c.bytes).where(walks.c.key == walk.key)
            row = connection.execute(wanted).one_or_none()
            if row is None:
                return None
            known = Known(row.total, row.bytes > 0)
            self.remember(walk, known)
        return known

    def recall(self, walk: Walk) -> Known | None:
        """What this worker knows of a walk."""
        with self._lock:
            known = self._remembered.get(walk.key)
            if known is None:
                return None
            self._remembered.move_to_end(walk.key)
            due = time.monotonic() - self._touched[walk.key] > TOUCH_SECONDS
            if due:
                self._touched[walk.key] = time.monotonic()
        if due:
            self._touch(walk)
        return known

    def note_walking(self, walk: Walk) -> None:
        """Tells that a page was read from a walk that is kept: somebody goes on."""
        if self._shelving is not None:
            self._shelving.note(walk.plan.outline)

    def remember(self, walk: Walk, known: Known) -> None:
        """Keeps what is known of a walk in this worker."""
        with self._lock:
            self._remembered[walk.key] = known
            self._remembered.move_to_end(walk.key)
            self._touched[walk.key] = time.monotonic()
            while len(self._remembered) > REMEMBERED:
                oldest, _ = self._remembered.popitem(last=False)
                del self._touched[oldest]

    def _touch(self, walk: Walk) -> None:
        used = update(walks).where(walks.c.key == walk.key).values(used_at=func.now())
        try:
            with self._engine.begin() as connection:
                connection.execute(used)
        except SQLAlchemyError as error:
            _tell(error)

    def share(self, walk: Walk, total: int) -> None:
        """Keeps the count of a walk, for every worker."""
        self.remember(walk, Known(total, is_kept=False))
        try:
            with self._engine.begin() as connection:
                connection.execute(_row_of(walk, total, 0).on_conflict_do_nothing())
                self._make_room(connection, walk, 0)
        except SQLAlchemyError as error:
            _tell(error)

    def keep(self, walk: Walk, open_roster: Callable[[Connection], object]) -> Window | None:
        """Keeps the ids of a walk, unless another worker has, and gives those of its plan's page. `open_roster` tells
        row-level security what the walk's caller may read.

        None where there is none to give: the roster has changed since the caller's was looked at, or the database
        takes nothing.
        """
        try:
            with self._engine.connect() as connection, connection.begin() as transaction:
                # Of all workers that want it now, one makes it; the others wait, and read it.
                connection.execute(select(func.pg_advisory_xact_lock(int.from_bytes(walk.key[:8], signed=True))))
                open_roster(connection)
                window = self._read(connection, walk) or self._make(connection, walk)
                if window is None:
                    transaction.rollback()
                    return None
        except SQLAlchemyError as error:
            _tell(error)
            return None
        self.remember(walk, Known(window.total, is_kept=window.total > 0))
        return window

    def _read(self, connection: Connection, walk: Walk) -> Window | None:
        """The page of a walk that is kept already; None where it is not, or not whole."""
        total = connection.scalar(select(walks.c.total).where(walks.c.key == walk.key))
        if total is None:
            return None
        begin, end = find_places(walk.plan, total)
        page = {"walk": walk.key, "page_begin": begin, "page_end": end}
        ids = tuple(connection.scalars(window_statement(), page)) if begin < end else ()
        return Window(ids, total) if len(ids) == end - begin else None

    def _make(self, connection: Connection, walk: Walk) -> Window | None:
        """Keeps the walk, in place of whatever is left of it; None where the roster has changed."""
        connection.execute(delete(walk_chunks).where(walk_chunks.c.walk == walk.key))
        made = connection.execute(keeping_statement(walk.plan, walk.reach), {**walk.values, "walk": walk.key}).one()
        if RosterState(made.revision, made.as_of, made.deletions_since) != walk.state:
            return None
        facts = {"total": made.total, "bytes": made.bytes, "used_at": func.now()}
        kept = _row_of(walk, made.total, made.bytes)
        connection.execute(kept.on_conflict_do_update(index_elements=["key"], set_=facts))
        self._make_room(connection, walk, made.bytes)
        return self._read(connection, walk)

    def _make_room(self, connection: Connection, walk: Walk, size: int) -> None:
        with self._lock:
            self._unchecked_walks += 1
            self._unchecked_bytes += size
            much = self._unchecked_walks >= UNCHECKED_WALKS or self._unchecked_bytes >= UNCHECKED_BYTES
            if not much and self._revision == walk.state.revision:
                return
            self._unchecked_walks = self._unchecked_bytes = 0
            self._revision = walk.state.revision
        evict(connection, walk.state.revision, self._bounds)


def _row_of(walk: Walk, total: int, size: int) -> postgresql.Insert:
    revision = walk.state.revision
    return insert(walks).values(key=walk.key, revision=revision, total=total, bytes=size, used_at=func.now())


def _tell(error: SQLAlchemyError) -> None:
    """Pages are right without any walk, and slow; whoever runs the service has to hear of it."""
    _log.warning("the walks are away, so pages are counted and sorted by themselves: %s", type(error).__name__)
