"""Conditions that a test waits for."""

from __future__ import annotations

import time
from collections.abc import Callable

import sqlalchemy as sa

PATIENCE_SECONDS = 60


def wait_for(condition: Callable[[], bool]) -> None:
    """Returns when the condition holds; AssertionError where it does not within a minute."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_blocked(engine: sa.Engine) -> bool:
    """Whether a session of this database waits for another one."""
    waiting = sa.text(
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0"
    )
    with engine.connect() as connection:
        return connection.execute(waiting).scalar_one() > 0
