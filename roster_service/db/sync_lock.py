"""The lock that keeps syncs apart, seen from outside: who holds it, and which runs ended without saying so.

A run holds the lock from before its row is there until after its row says how it ended. So a row that says `running`
while nobody holds the lock is of a process that is gone.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, select, text

from roster_service.db.tables import sync_runs

# Two numbers, as pg_locks shows them: "Rost", "sync".
SYNC_LOCK = {"class": 0x526F7374, "object": 0x73796E63}
RUNNING, INTERRUPTED = "running", "interrupted"
# What is said of an interrupted run.
INTERRUPTED_WORDS = "its process ended before the run; nothing was changed"

_HOLDER = text(
    "SELECT a.application_name, a.pid, to_char(coalesce(a.xact_start, a.state_change), 'HH24:MI:SS') AS since "
    "FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE l.locktype = 'advisory' AND l.granted "
    "AND l.classid = :class AND l.objid = :object "
    "AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


def try_sync_lock(connection: Connection) -> bool:
    """Holds the lock until the transaction ends; False while a sync or a purge is under way."""
    taken = text("SELECT pg_try_advisory_xact_lock(:class, :object)")
    return bool(connection.scalar(taken, SYNC_LOCK))


def find_lock_holder(connection: Connection) -> Row[Any] | None:
    """(application name, process, time of day since when) of the session that holds the lock."""
    return connection.execute(_HOLDER, SYNC_LOCK).first()


def find_interrupted(connection: Connection) -> frozenset[int]:
    """The runs that are interrupted, if their rows still say `running` afterwards: a run may end while this looks."""
    running = connection.scalars(select(sync_runs.c.id).where(sync_runs.c.outcome == RUNNING)).all()
    return frozenset() if not running or find_lock_holder(connection) is not None else frozenset(running)
