"""The advisory lock that lets one sync or purge run at a time, its holder, and the runs that were interrupted.

A run takes the lock before it adds its row to sync_runs, and releases it after it has written its outcome there. So if
a row has the outcome `running` and no session holds the lock, the process of that run has ended.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, select, text

from roster_service.db.tables import sync_runs

# Two numbers, as pg_locks shows them: "Rost", "sync".
SYNC_LOCK = {"class": 0x526F7374, "object": 0x73796E63}
RUNNING, INTERRUPTED = "running", "interrupted"
# The message of an interrupted run.
INTERRUPTED_WORDS = "its process ended before the run; nothing was changed"

_HOLDER = text(
    "SELECT a.application_name, a.pid, to_char(coalesce(a.xact_start, a.state_change), 'HH24:MI:SS') AS since "
    "FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE l.locktype = 'advisory' AND l.granted "
    "AND l.classid = :class AND l.objid = :object "
    "AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


def try_sync_lock(connection: Connection) -> bool:
    """Takes the lock until the end of the transaction. Returns False if a sync or a purge holds it."""
    taken = text("SELECT pg_try_advisory_xact_lock(:class, :object)")
    return bool(connection.scalar(taken, SYNC_LOCK))


def find_lock_holder(connection: Connection) -> Row[Any] | None:
    """Returns (`application_name`, `pid`, `since` as HH:MM:SS) of the session that holds the lock, or None."""
    return connection.execute(_HOLDER, SYNC_LOCK).first()


def find_interrupted(connection: Connection) -> frozenset[int]:
    """Returns the ids of the interrupted runs. A run may end during the call, so the caller has to read the rows after
    it: only those that still have the outcome `running` are interrupted."""
    running = connection.scalars(select(sync_runs.c.id).where(sync_runs.c.outcome == RUNNING)).all()
    return frozenset() if not running or find_lock_holder(connection) is not None else frozenset(running)
