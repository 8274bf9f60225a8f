"""The deadline of a request: when the database must have ended its work for it; and a bound for single statements.

The deadline covers all that a request waits for: a free connection of a pool, a new connection, each statement, and the
retries. PostgreSQL ends a statement at the deadline, because the statement's `statement_timeout` is the time that is
left. A server that hangs, or that the network has lost, ends nothing: then the worker closes the connection itself,
`GRACE_SECONDS` after the deadline. It can do so because psycopg2 waits for the database in `wait_for_database`.
"""

from __future__ import annotations

import contextlib
import math
import select
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg2
import sqlalchemy as sa
from psycopg2.errors import QueryCanceled
from psycopg2.extensions import POLL_OK, POLL_READ, STATUS_SETUP, set_wait_callback
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from roster_service.errors import CommandError

# How long the worker waits after the deadline for PostgreSQL to end the statement and to say so.
GRACE_SECONDS = 2.0
# A statement that begins so soon after its request keeps the timeout of its session, which then ends it so much later.
EARLY_SECONDS = 1.0

_own = threading.local()
_SET = sa.text("SELECT set_config('statement_timeout', :timeout, true)")


class OverdueError(SQLAlchemyError):
    """The time of a request is up. It is an SQLAlchemyError, so that callers treat it as a failure of the database."""


@contextlib.contextmanager
def limit_time(seconds: float) -> Iterator[None]:
    """Gives this thread, in the block, `seconds` for its work with databases. Inside another such block, the earlier
    deadline counts."""
    with allow_time(min(seconds, find_time_left())):
        yield


@contextlib.contextmanager
def allow_time(seconds: float) -> Iterator[None]:
    """As `limit_time`, but whatever is left of an outer block: for work that its end must not stop."""
    outer: float | None = getattr(_own, "end", None)
    _own.end = time.monotonic() + seconds
    try:
        yield
    finally:
        _own.end = outer


def find_time_left() -> float:
    """Returns the seconds until the deadline of this thread, negative after it; infinity if it has none."""
    end: float | None = getattr(_own, "end", None)
    return math.inf if end is None else end - time.monotonic()


def require_time_left() -> None:
    """Raises OverdueError if the deadline of this thread has passed."""
    if find_time_left() <= 0:
        raise OverdueError("the time of the request is up")


def limit_statement(timeout_seconds: float) -> str:
    """Returns the SQL that stands before a statement, so that it ends at the deadline; '' if there is none, or if the
    session's own timeout, of `timeout_seconds`, ends it in time.

    Raises OverdueError if the deadline has passed.
    """
    require_time_left()
    left = find_time_left()
    if left > timeout_seconds - EARLY_SECONDS or left == math.inf:
        return ""
    # The timeout 0 would be no timeout.
    return f"SET LOCAL statement_timeout = '{math.ceil(left * 1000)}ms'; "


def enforce_deadline(engine: sa.Engine, timeout_seconds: float) -> None:
    """Makes every new connection and every statement of the engine end at the deadline. `timeout_seconds`: of the
    engine's sessions."""

    def check(*_: Any) -> None:
        require_time_left()

    def limit(
        _connection: object, _cursor: object, statement: str, parameters: Any, _context: object, _many: bool
    ) -> tuple[str, Any]:
        return limit_statement(timeout_seconds) + statement, parameters

    sa.event.listen(engine, "do_connect", check)
    sa.event.listen(engine, "before_cursor_execute", limit, retval=True)


class DeadlinePool(sa.QueuePool):
    """A pool that lets a request wait for a free connection until its deadline at most."""

    # Its logger is SQLAlchemy's: with the name of this class, the level of the service's loggers would apply to it.
    _sqla_logger_namespace = "sqlalchemy.pool.DeadlinePool"

    @property
    def _timeout(self) -> float:
        return max(0.0, min(self._longest_wait, find_time_left()))

    @_timeout.setter
    def _timeout(self, seconds: float) -> None:
        self._longest_wait = seconds


def end_waits_at_the_deadline() -> None:
    """Makes psycopg2, in this process, wait for databases as `wait_for_database` does. COPY is not possible then."""
    set_wait_callback(wait_for_database)


def wait_for_database(connection: Any) -> None:
    """Waits until the database has answered, or has accepted the new connection.

    Raises psycopg2.OperationalError, upon which psycopg2 closes the connection, when the grace after the deadline of
    this thread has ended, or when a new connection takes longer than its `connect_timeout`.
    """
    end = time.monotonic() + find_time_left() + GRACE_SECONDS
    if connection.status == STATUS_SETUP:
        # libpq itself observes this parameter only where nobody waits in its place. 0 stands for no timeout there.
        timeout = float(connection.info.dsn_parameters.get("connect_timeout", 0)) or math.inf
        end = min(end, time.monotonic() + timeout)
    while (state := connection.poll()) != POLL_OK:
        waiting = select.poll()
        waiting.register(connection.fileno(), select.POLLIN if state == POLL_READ else select.POLLOUT)
        left = end - time.monotonic()
        if left <= 0 or not waiting.poll(None if left == math.inf else math.ceil(left * 1000)):
            raise psycopg2.OperationalError("the database does not answer in time")


@contextmanager
def limit_statements(connection: sa.Connection, seconds: float) -> Iterator[None]:
    """Ends each statement of the block after `seconds`, and raises CommandError then. The transaction goes on."""
    try:
        with connection.begin_nested():
            connection.execute(_SET, {"timeout": f"{int(seconds * 1000)}ms"})
            yield
            connection.execute(_SET, {"timeout": "0"})
    except OperationalError as error:
        if not isinstance(error.orig, QueryCanceled):
            raise
        raise CommandError(f"this takes longer than {seconds:g} seconds; ask for less") from None
