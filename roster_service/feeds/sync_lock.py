"""The advisory locks of the sync, their holders, and the runs that were interrupted.

A load, a removal and a purge of a feed hold the lock of the feed alone, and share the lock of the roster. So runs of
different feeds go on side by side. What needs the whole roster as it is, or a stamp that no run has, takes the lock of
the roster alone: some commands, and a purge that ends references.

A run takes its locks before it adds its row to sync_runs, and releases them after it has written its outcome there. So
if a row has the outcome `running` and no session holds the lock of its feed, the process of that run has ended.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from roster_service.db.tables import feeds, sync_runs
from roster_service.errors import RosterServiceError

# Two numbers, as pg_locks shows them: "Rost", "sync".
SYNC_LOCK = {"class": 0x526F7374, "object": 0x73796E63}
# The first number of the locks of feeds, "Feed". The second is the hash of the name, because a feed may not exist yet.
FEED_CLASS = 0x46656564
RUNNING, INTERRUPTED = "running", "interrupted"
# The sessions of runs have names that begin with this, as pg_stat_activity shows them.
SESSION_NAME = "roster sync: "
# And those of commands that need the roster as it is.
TASK_NAME = "roster: "
# The message of an interrupted run.
INTERRUPTED_WORDS = "its process ended before the run; nothing was changed"
# Takes a sentence for the person who waits for a command.
Say = Callable[[str], None]
# Seconds of waiting before the command says what it waits for.
PATIENCE_SECONDS = 1.0
# How often a run looks whether the lock that it waits for is free.
WAIT_SECONDS = 0.5

_HOLDER = (
    "SELECT a.application_name, a.pid, "
    "to_char(clock_timestamp() - coalesce(a.xact_start, a.state_change), 'HH24:MI:SS') AS age "
    "FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE locktype = 'advisory' AND granted "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND pid <> pg_backend_pid() "
)
_HOLDER_OF_FEED = sa.text(
    _HOLDER + "AND classid = :class AND objid = CAST(CAST(hashtext(:name) AS bigint) & 4294967295 AS oid)"
)
_HOLDER_OF_ROSTER = sa.text(_HOLDER + "AND classid = :class AND objid = :object")
_INTERRUPTED = sa.text(
    "SELECT run.id FROM sync_runs run WHERE run.outcome = :outcome "
    "AND run.id NOT IN (SELECT going.run_id FROM find_runs_under_way() going)"
)


class LockedError(RosterServiceError):
    """Another run holds a lock that this one needs."""


@contextlib.contextmanager
def hold_lock(connection: sa.Connection, feed_name: str, *, wait: bool = False, alone: bool = False) -> Iterator[None]:
    """Holds the lock of a feed and a share of the roster's until the block ends, over all transactions of the
    connection. `alone`: holds the whole lock of the roster, so that no other feed has a run meanwhile. While another
    run holds one of them, waits for its end (`wait`), or raises LockedError, which names the other run.

    The locks belong to the database session, so PostgreSQL releases them when the process ends in any way. The holder
    knows that no other run of the feed is under way, so it marks runs that still have the outcome RUNNING as
    interrupted.
    """
    with connection.begin():
        name_session(connection, feed_name, None)
    while not _try_lock(connection, feed_name, alone=alone, wait=wait):
        time.sleep(WAIT_SECONDS)
    try:
        with connection.begin():
            feed_id = sa.select(feeds.c.id).where(feeds.c.name == feed_name).scalar_subquery()
            found = sa.update(sync_runs).where(sync_runs.c.feed_id == feed_id, sync_runs.c.outcome == RUNNING)
            connection.execute(found.values(outcome=INTERRUPTED, message=INTERRUPTED_WORDS, stamp=None))
        yield
    finally:
        _release_lock(connection)


def _try_lock(connection: sa.Connection, feed_name: str, *, alone: bool, wait: bool) -> bool:
    with connection.begin():
        if _take_locks(connection, feed_name, alone=alone):
            return True
        if not wait:
            found = _find_holder(connection, _HOLDER_OF_FEED, feed_name) or _find_holder(connection, _HOLDER_OF_ROSTER)
            holder = _name_holder(found)
            raise LockedError(f"{holder} is under way; try again when it is done; a loader waits with --wait")
    return False


def _take_locks(connection: sa.Connection, feed_name: str, *, alone: bool) -> bool:
    """Takes the locks of `hold_lock`. Returns False, and takes none, if another session holds one of them."""
    shared = "" if alone else "_shared"
    if not connection.scalar(sa.text(f"SELECT pg_try_advisory_lock{shared}(:class, :object)"), SYNC_LOCK):
        return False
    own = {"class": FEED_CLASS, "name": feed_name}
    if connection.scalar(sa.text("SELECT pg_try_advisory_lock(:class, hashtext(:name))"), own):
        return True
    connection.execute(sa.text(f"SELECT pg_advisory_unlock{shared}(:class, :object)"), SYNC_LOCK)
    return False


def _release_lock(connection: sa.Connection) -> None:
    try:
        with connection.begin():
            connection.execute(sa.text("SELECT pg_advisory_unlock_all()"))
            connection.execute(sa.text("RESET application_name"))
    except SQLAlchemyError:
        # PostgreSQL releases the locks with the session, so close the session.
        connection.invalidate()


def try_sync_lock(connection: sa.Connection, task: str) -> bool:
    """Takes the lock of the roster until the end of the transaction. Returns False while a run is under way. `task`:
    what the transaction does, for those who find the lock taken."""
    taken = sa.text("SELECT pg_try_advisory_xact_lock(:class, :object)")
    name_task(connection, task)
    return bool(connection.scalar(taken, SYNC_LOCK))


def take_sync_lock(connection: sa.Connection, task: str, say: Say) -> None:
    """Takes the lock of the roster until the end of the transaction, and waits for the runs that are under way. `task`:
    as for `try_sync_lock`."""
    if not try_sync_lock(connection, task):
        holder = _name_holder(_find_holder(connection, _HOLDER_OF_ROSTER))
        with say_later(say, f"waiting for the end of {holder}"):
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(:class, :object)"), SYNC_LOCK)


@contextlib.contextmanager
def say_later(say: Say, words: str) -> Iterator[None]:
    """Says what the block waits for, if it takes longer than `PATIENCE_SECONDS`."""
    timer = threading.Timer(PATIENCE_SECONDS, say, (words,))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def name_task(connection: sa.Connection, task: str) -> None:
    """Gives the session the name of a task until the end of the transaction."""
    connection.execute(sa.select(sa.func.set_config("application_name", TASK_NAME + task, True)))


def name_session(connection: sa.Connection, feed_name: str, step: str | None) -> None:
    """Gives the session the name of its feed and of the step of its run, which others see at once: a row of the run
    would be seen only after the commit. PostgreSQL cuts a name at 63 bytes, so the step comes first."""
    name = SESSION_NAME + (feed_name if step is None else f"{step}, {feed_name}")
    connection.execute(sa.select(sa.func.set_config("application_name", name, False)))


def find_step(connection: sa.Connection, feed_name: str) -> str | None:
    """Returns the step of the run of a feed that is under way, as its session is named; None before the first step and
    without a run."""
    holder = _find_holder(connection, _HOLDER_OF_FEED, feed_name)
    if holder is None or not holder.application_name.startswith(SESSION_NAME):
        return None
    step, comma, _ = holder.application_name.removeprefix(SESSION_NAME).partition(", ")
    return step if comma else None


def _find_holder(connection: sa.Connection, query: sa.TextClause, feed_name: str | None = None) -> sa.Row[Any] | None:
    """(`application_name`, `pid`, `age` as HH:MM:SS) of another session that holds a lock, or None."""
    lock = SYNC_LOCK if feed_name is None else {"class": FEED_CLASS, "name": feed_name}
    return connection.execute(query, lock).first()


def _name_holder(holder: sa.Row[Any] | None) -> str:
    """The words for the session that holds a lock."""
    if holder is None:
        return "another sync"
    kind = "another command" if holder.application_name.startswith(TASK_NAME) else "another sync"
    return f"{kind} ({holder.application_name}, process {holder.pid}, for {holder.age})"


def find_interrupted(connection: sa.Connection) -> frozenset[int]:
    """Returns the ids of the interrupted runs. A run may end during the call, so the caller has to read the rows after
    it: only those that still have the outcome `running` are interrupted."""
    return frozenset(connection.scalars(_INTERRUPTED, {"outcome": RUNNING}))
