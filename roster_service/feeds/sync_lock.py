"""The advisory locks of the sync, their holders, and the runs that were interrupted.

A load, a removal and a purge of a feed hold the lock of the feed alone, and share the lock of the roster. So runs of
different feeds go on side by side. A command that needs the whole roster as it is takes the lock of the roster alone.

A run takes its locks before it adds its row to sync_runs, and releases them after it has written its outcome there. So
if a row has the outcome `running` and no session holds the lock of its feed, the process of that run has ended.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import sqlalchemy as sa

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

_HOLDER = (
    "SELECT a.application_name, a.pid, to_char(coalesce(a.xact_start, a.state_change), 'HH24:MI:SS') AS since "
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


def try_feed_lock(connection: sa.Connection, feed_name: str, *, alone: bool) -> bool:
    """Takes the lock of the feed and a share of the roster's, or all of it (`alone`), until the session ends or
    `release_feed_lock`. Returns False, and takes none, if another session holds one of them."""
    shared = "" if alone else "_shared"
    if not connection.scalar(sa.text(f"SELECT pg_try_advisory_lock{shared}(:class, :object)"), SYNC_LOCK):
        return False
    own = {"class": FEED_CLASS, "name": feed_name}
    if connection.scalar(sa.text("SELECT pg_try_advisory_lock(:class, hashtext(:name))"), own):
        return True
    connection.execute(sa.text(f"SELECT pg_advisory_unlock{shared}(:class, :object)"), SYNC_LOCK)
    return False


def release_feed_lock(connection: sa.Connection) -> None:
    """Releases the locks of the session."""
    connection.execute(sa.text("SELECT pg_advisory_unlock_all()"))


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
        holder = name_holder(connection.execute(_HOLDER_OF_ROSTER, SYNC_LOCK).first())
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
    holder = connection.execute(_HOLDER_OF_FEED, {"class": FEED_CLASS, "name": feed_name}).first()
    if holder is None or not holder.application_name.startswith(SESSION_NAME):
        return None
    step, comma, _ = holder.application_name.removeprefix(SESSION_NAME).partition(", ")
    return step if comma else None


def find_lock_holder(connection: sa.Connection, feed_name: str) -> sa.Row[Any] | None:
    """Returns (`application_name`, `pid`, `since` as HH:MM:SS) of the session that keeps a run of the feed from its
    locks, or None."""
    found = connection.execute(_HOLDER_OF_FEED, {"class": FEED_CLASS, "name": feed_name}).first()
    return found or connection.execute(_HOLDER_OF_ROSTER, SYNC_LOCK).first()


def name_holder(holder: sa.Row[Any] | None) -> str:
    """Returns the words for the session of `find_lock_holder`."""
    if holder is None:
        return "another sync"
    kind = "another command" if holder.application_name.startswith(TASK_NAME) else "another sync"
    return f"{kind} ({holder.application_name}, process {holder.pid}, since {holder.since} UTC)"


def find_interrupted(connection: sa.Connection) -> frozenset[int]:
    """Returns the ids of the interrupted runs. A run may end during the call, so the caller has to read the rows after
    it: only those that still have the outcome `running` are interrupted."""
    return frozenset(connection.scalars(_INTERRUPTED, {"outcome": RUNNING}))
