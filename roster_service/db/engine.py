"""Connections: one maker for the engines that read, one for the engine that writes.

A reader's connections cannot write: PostgreSQL itself refuses, whatever the code above does. Both fix the time zone, so
that no server setting changes what a statement means.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from psycopg2.extensions import TRANSACTION_STATUS_IDLE
from psycopg2.extensions import connection as DriverConnection  # noqa: N812  (the driver's own class)
from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import OperationalError

from roster_service.db.deadline import enforce_deadline
from roster_service.db.prepared_statements import allow_preparing
from roster_service.errors import DatabaseUnavailableError, SettingError

# How long a connection is waited for: until one of the pool is free, and until a new one is made.
POOL_SECONDS = CONNECT_SECONDS = 10
# How long what a worker asks before it serves may take: one statement, and all together before the last one.
START_SECONDS = 10
# How requests are planned.
_PLANNING = {
    # Pages are short index walks; compiling machine code for them costs more than running them.
    "jit": "off",
    # A roster that is served lies in memory: looking a row up costs little more than reading it in passing. By the
    # usual guess every role of the roster is read to see which of a few users are visible.
    "random_page_cost": "1.1",
    # Prepared statements find what they want by key, whatever they are asked for: one plan is good for all. By itself
    # the database would plan a page of documents anew each time, which takes far longer than reading it.
    "plan_cache_mode": "force_generic_plan",
}
# A page, its count and the revision in its headers come from one roster, even while a sync commits.
_ONE_SNAPSHOT = "ISOLATION LEVEL REPEATABLE READ, READ ONLY"
# The same of every transaction of a session.
_SNAPSHOTS = {"default_transaction_isolation": "repeatable read", "default_transaction_read_only": "on"}
# In what a session is told when it begins.
_SPECIAL, _ESCAPED = re.compile(r"[\\\s]"), r"\\\g<0>"
_STARTS_TRANSACTION = "transaction is to be opened"
# The execution option that says what a message begins with that is a transaction by itself.
BATCH_START = "roster_message_opening"
SESSIONS_IGNORE_SETTINGS = (
    "the sessions of the database are not as they are asked for; behind a pooler, set ROSTER_PREPARED_STATEMENTS=false"
)


def make_engine(url: str) -> Engine:
    """An engine for commands, migrations and the sync: it may write.

    `url`: `postgresql://user:password@host/name`. Raises SettingError where it is no such address.
    """
    return _make(url, _write_options({}), pool_size=2)


def make_startup_engine(url: str) -> Engine:
    """An engine for what a worker asks and writes before it serves: as `make_engine`, and no statement waits long."""
    engine = _make(url, {}, pool_size=1)
    _open_transactions_with(engine, _set_locally({"statement_timeout": f"{START_SECONDS}s"}))
    return engine


def make_reading_engine(url: str, *, statement_seconds: int, pool_size: int, own_sessions: bool) -> Engine:
    """An engine for requests: read only, one snapshot per transaction, and no statement runs longer than told.

    `own_sessions`: whether each connection has a session of its own, which is then told all this when it begins, and
    plans statements once; without that, each transaction is told, so that a pooler may hand every transaction another
    session.
    """
    settings = {
        "statement_timeout": f"{statement_seconds}s",
        **_PLANNING,
        "timezone": "UTC",
    }
    extra: dict[str, Any] = {"connection_factory": Reader}
    begin, start = "BEGIN;", ""
    if own_sessions:
        extra |= _write_options({**settings, **_SNAPSHOTS})
    else:
        local = _set_locally(settings)
        begin, start = f"BEGIN {_ONE_SNAPSHOT}; {local}", f"SET TRANSACTION {_ONE_SNAPSHOT}; {local}"
    engine = _make(url, extra, pool_size=pool_size)
    _open_transactions_with(engine, begin)
    engine.update_execution_options(**{BATCH_START: start})
    return allow_preparing(engine, own_sessions)


class Reader(DriverConnection):  # type: ignore[misc]
    """A connection that sends a message exactly as it is told, without a BEGIN of the driver's before it: so a
    transaction begins in the message of its first statement, or is one message altogether."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.autocommit = True

    def commit(self) -> None:
        """Ends the transaction, if there is one."""
        self._end("COMMIT")

    def rollback(self) -> None:
        """Ends the transaction, if there is one."""
        self._end("ROLLBACK")

    def _end(self, statement: str) -> None:
        if self.get_transaction_status() != TRANSACTION_STATUS_IDLE:
            with self.cursor() as cursor:
                cursor.execute(statement)


def _set_locally(settings: Mapping[str, str]) -> str:
    return " ".join(f"SET LOCAL {name} = {_quote(text)};" for name, text in settings.items())


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _open_transactions_with(engine: Engine, start: str) -> None:
    """Puts `start` before the first statement of each transaction, in the same message: it costs no round trip."""
    start = start.replace("%", "%%") + " "

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.info[_STARTS_TRANSACTION] = True

    @event.listens_for(engine, "before_cursor_execute", retval=True)
    def open_transaction(
        connection: Connection, _cursor: object, statement: str, parameters: Any, _context: object, _many: bool
    ) -> tuple[str, Any]:
        if connection.info.pop(_STARTS_TRANSACTION, False):
            statement = start + statement
        return statement, parameters


def make_counting_engine(url: str) -> Engine:
    """An engine for counters: each statement commits by itself, none waits long, and a crash may lose the last."""
    session = {
        "default_transaction_isolation": "read committed",
        "statement_timeout": "2s",
        "synchronous_commit": "off",
    }
    return _make(url, _write_options(session), pool_size=2).execution_options(isolation_level="AUTOCOMMIT")


def make_ordering_engine(url: str, *, statement_seconds: int) -> Engine:
    """An engine for keeping orderings: it may write; each statement sees what was committed before it, and none runs
    longer than told."""
    settings = {
        "statement_timeout": f"{statement_seconds}s",
        "synchronous_commit": "off",
        **_PLANNING,
        "timezone": "UTC",
    }
    engine = _make(url, {}, pool_size=1)
    _open_transactions_with(engine, _set_locally(settings))

    @event.listens_for(engine, "connect")
    def read_committed(connection: Any, _record: object) -> None:
        # Who waited for another worker's ordering has to see it.
        connection.set_session(isolation_level="READ COMMITTED")

    return engine


def _write_options(session: dict[str, str]) -> dict[str, str]:
    """What a session is told when it begins; not for a pooler, which shares sessions."""
    settings = {"timezone": "UTC", **session}
    return {"options": " ".join(f"-c {name}={_SPECIAL.sub(_ESCAPED, value)}" for name, value in settings.items())}


def _make(url: str, extra: Mapping[str, Any], *, pool_size: int) -> Engine:
    try:
        address = make_url(url)
    except Exception as error:
        raise SettingError("the database URL cannot be read") from error
    if address.get_backend_name() not in ("postgresql", "postgres"):
        raise SettingError(f"the database must be PostgreSQL, not {address.get_backend_name()}")
    engine = create_engine(
        address.set(drivername="postgresql+psycopg2"),
        pool_size=pool_size,
        max_overflow=2,
        pool_timeout=POOL_SECONDS,
        pool_pre_ping=False,
        pool_recycle=1800,
        # It takes correlated subqueries for products of two tables, and time.
        enable_from_linting=False,
        # Values of statements are personal data; an error shall not carry them.
        hide_parameters=True,
        connect_args={**extra, "connect_timeout": CONNECT_SECONDS, "application_name": "roster"},
    )
    enforce_deadline(engine)
    return engine


def require_reachable(engine: Engine) -> None:
    """Raises DatabaseUnavailableError, in one sentence and without the password, where no connection can be made."""
    try:
        with engine.connect() as connection:
            connection.execute(text("SELECT 1"))
    except OperationalError as error:
        reason = str(error.orig).strip().splitlines()[0]
        shown = engine.url.set(drivername="postgresql").render_as_string(hide_password=True)
        raise DatabaseUnavailableError(f"the database at {shown} does not answer: {reason}") from None


def require_reading(engine: Engine) -> None:
    """Raises SettingError where a transaction of `engine`, of `make_reading_engine`, could write or is not one
    snapshot: something in between does not pass on what a session is told when it begins."""
    told = text("SELECT current_setting('transaction_isolation'), current_setting('transaction_read_only')")
    with engine.connect() as connection:
        if tuple(connection.execute(told).one()) != tuple(_SNAPSHOTS.values()):
            raise SettingError(SESSIONS_IGNORE_SETTINGS)
