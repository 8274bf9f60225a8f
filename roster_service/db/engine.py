"""The engines: for requests, orderings, counters, the start of a worker, and commands.

The connections for requests cannot write: their transactions are read only, so PostgreSQL refuses. Engines set the time
zone, so that no setting of the server changes the meaning of a statement.
"""

from __future__ import annotations

import math
import re
import select
from collections.abc import Mapping
from typing import Any

import psycopg2
import sqlalchemy as sa
from psycopg2.extensions import TRANSACTION_STATUS_IDLE, make_dsn
from psycopg2.extensions import connection as DriverConnection  # noqa: N812  (the driver's own class)
from sqlalchemy.exc import InvalidatePoolError, OperationalError

from roster_service.db.deadline import DeadlinePool, enforce_deadline, require_time_left
from roster_service.db.prepared_statements import allow_preparing
from roster_service.errors import DatabaseUnavailableError, SettingError
from roster_service.settings import hide_passwords

# The longest wait for a free connection of the pool.
POOL_SECONDS = 10
# How libpq connects, unless the URL says otherwise. A database that hangs or is cut off must not take all the time of
# each request: after the first failure, a request waits for a new connection only. The others find a network that has
# gone, under a connection that is idle (keepalives) and under one that is not.
CONNECTING = {
    "connect_timeout": 3,
    "keepalives_idle": 20,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 40_000,
    "application_name": "roster",
}
# The limit on the statements of a worker before it serves: on each of them, and on the time in which it may begin one.
START_SECONDS = 10
# Settings of the planner for requests.
_PLANNING = {
    # The statements of a page are short index scans: compiling them takes longer than running them.
    "jit": "off",
    # A roster that is served lies in memory: a random read costs little more than a sequential one. With the default,
    # PostgreSQL reads every role of the roster to see which of a few users are visible.
    "random_page_cost": "1.1",
    # The first page of a large collection, and its count, hash the roles that open users: look-ups of each user would
    # take four times as long. A statement takes memory for what it hashes or sorts, which is nothing for a page.
    "work_mem": "64MB",
    # Prepared statements find their rows by key, so one plan is good for all values. By default PostgreSQL would plan a
    # page again each time, which takes longer than reading it.
    "plan_cache_mode": "force_generic_plan",
}
# A page, its count and the revision in its headers come from one snapshot, even while a sync commits.
_ONE_SNAPSHOT = "ISOLATION LEVEL REPEATABLE READ, READ ONLY"
# The same as defaults of a session, for all its transactions.
_SNAPSHOTS = {"default_transaction_isolation": "repeatable read", "default_transaction_read_only": "on"}
# The escaping of a value in libpq's `options`.
_SPECIAL, _ESCAPED = re.compile(r"[\\\s]"), r"\\\g<0>"
# The key in `Connection.info` that marks the first statement of a transaction.
_STARTS_TRANSACTION = "roster_starts_transaction"
# The execution options of an engine for `RoundTrips`: the text that begins a batch, and the timeout of a statement.
BATCH_START, BATCH_SECONDS = "roster_batch_start", "roster_batch_seconds"
# The key in the `info` of a pooled connection that marks one that was used before.
_USED = "roster_used"
# The timeout of a counter, in seconds.
COUNTING_SECONDS = 2
# No transaction may hold its snapshot for longer than a few minutes.
SNAPSHOT_SECONDS = 120
SESSIONS_IGNORE_SETTINGS = (
    "the database sessions ignore the settings of the service; behind a pooler, set ROSTER_PREPARED_STATEMENTS=false"
)


def make_engine(url: str, *, jobs: int = 1) -> sa.Engine:
    """Returns an engine for commands, migrations and the sync, which may write. `jobs`: how many loads share it.

    `url`: `postgresql://user:password@host/name`. This and the next functions raise SettingError for another address.
    """
    # A load has a connection for its transaction, and one at a time for what it commits before.
    return _make_engine(url, _write_options({}), pool_size=2 * jobs)


def make_startup_engine(url: str) -> sa.Engine:
    """Returns an engine for the statements of a worker before it serves. It may write; a statement ends after
    `START_SECONDS`."""
    engine = _make_engine(url, {}, pool_size=1, timeout_seconds=START_SECONDS)
    _open_transactions_with(engine, _set_locally({"statement_timeout": f"{START_SECONDS}s"}))
    return engine


def make_reading_engine(url: str, *, statement_seconds: int, pool_size: int, own_sessions: bool) -> sa.Engine:
    """Returns an engine for requests: read only, with one snapshot for each transaction. A statement ends after
    `statement_seconds`.

    `own_sessions`: whether each connection has a session of its own. Then the session gets these settings when it
    begins, and prepares statements. Otherwise each transaction gets the settings, so that a pooler can run every
    transaction in another session.
    """
    settings = {
        "statement_timeout": f"{statement_seconds}s",
        **_PLANNING,
        "timezone": "UTC",
    }
    extra: dict[str, Any] = {"connection_factory": ReadingConnection}
    begin, start = "BEGIN;", ""
    if own_sessions:
        extra |= _write_options({**settings, **_SNAPSHOTS})
    else:
        local = _set_locally(settings)
        begin, start = f"BEGIN {_ONE_SNAPSHOT}; {local}", f"SET TRANSACTION {_ONE_SNAPSHOT}; {local}"
    engine = _make_engine(url, extra, pool_size=pool_size, timeout_seconds=statement_seconds)
    _open_transactions_with(engine, begin)
    engine.update_execution_options(**{BATCH_START: start, BATCH_SECONDS: statement_seconds})
    return allow_preparing(engine, own_sessions)


class ReadingConnection(DriverConnection):  # type: ignore[misc]
    """A connection whose driver sends no BEGIN of its own. So BEGIN can go with the first statement of a transaction in
    one round trip, and a batch is a transaction by itself."""

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


def _open_transactions_with(engine: sa.Engine, start: str) -> None:
    """Makes the engine put `start` before the first statement of each transaction, in the same round trip."""
    start = start.replace("%", "%%") + " "

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        connection.info[_STARTS_TRANSACTION] = True

    @sa.event.listens_for(engine, "before_cursor_execute", retval=True)
    def open_transaction(
        connection: sa.Connection, _cursor: object, statement: str, parameters: Any, _context: object, _many: bool
    ) -> tuple[str, Any]:
        if connection.info.pop(_STARTS_TRANSACTION, False):
            statement = start + statement
        return statement, parameters


def make_counting_engine(url: str) -> sa.Engine:
    """Returns an engine for counters: each statement commits by itself and ends after `COUNTING_SECONDS`. A crash of
    the database may lose the last ones, because commits do not wait for the disk."""
    session = {
        "default_transaction_isolation": "read committed",
        "statement_timeout": f"{COUNTING_SECONDS}s",
        "synchronous_commit": "off",
    }
    return _make_engine(
        url, _write_options(session), pool_size=2, timeout_seconds=COUNTING_SECONDS, isolation_level="AUTOCOMMIT"
    )


def make_ordering_engine(url: str, *, statement_seconds: int) -> sa.Engine:
    """Returns an engine for making orderings. It may write; each statement sees what was committed before it, and ends
    after `statement_seconds`."""
    settings = {
        "statement_timeout": f"{statement_seconds}s",
        "synchronous_commit": "off",
        **_PLANNING,
        "timezone": "UTC",
    }
    engine = _make_engine(url, {}, pool_size=1, timeout_seconds=statement_seconds)
    _open_transactions_with(engine, _set_locally(settings))

    @sa.event.listens_for(engine, "connect")
    def read_committed(connection: Any, _record: object) -> None:
        # A transaction that waited for another worker to make the same ordering has to see that ordering.
        connection.set_session(isolation_level="READ COMMITTED")

    return engine


def make_snapshot_engine(url: str) -> sa.Engine:
    """Returns an engine for reading whole collections: read only, with one snapshot for each transaction. A statement,
    which gives some rows of one, ends after `SNAPSHOT_SECONDS`."""
    settings = {"statement_timeout": f"{SNAPSHOT_SECONDS}s", **_PLANNING, "timezone": "UTC"}
    # Every row is wanted, and not the first ones soon.
    session = _write_options({**settings, **_SNAPSHOTS, "cursor_tuple_fraction": "1"})
    return _make_engine(url, session, pool_size=1, timeout_seconds=SNAPSHOT_SECONDS)


def _write_options(session: dict[str, str]) -> dict[str, str]:
    """Returns the connection argument that gives a session its settings when it begins. A pooler may drop it, because
    it shares sessions."""
    settings = {"timezone": "UTC", **session}
    return {"options": " ".join(f"-c {name}={_SPECIAL.sub(_ESCAPED, value)}" for name, value in settings.items())}


def read_url(text: str, setting: str = "the database URL") -> sa.URL:
    """Returns the address of a PostgreSQL. Raises SettingError for another text, naming the `setting`."""
    try:
        address = sa.make_url(text)
    except Exception as error:
        raise SettingError(f"{setting} cannot be read") from error
    if address.get_backend_name() not in ("postgresql", "postgres"):
        raise SettingError(f"the database must be PostgreSQL, not {address.get_backend_name()}")
    if "@" in (address.host or ""):
        # The rest of the password would stand in each message that names the host.
        raise SettingError(f"{setting} has two @; in a password, write @ as %40")
    for name in address.query:
        try:
            make_dsn(**{name: ""})
        except psycopg2.ProgrammingError:
            raise SettingError(f"{setting} has the parameter {name}, which libpq does not know") from None
    return address


def _make_engine(
    url: str, extra: Mapping[str, Any], *, pool_size: int, timeout_seconds: float = math.inf, **more: Any
) -> sa.Engine:
    """Returns an engine whose sessions end a statement after `timeout_seconds`. `more`: for `create_engine`."""
    address = read_url(url)
    engine = sa.create_engine(
        address.set(drivername="postgresql+psycopg2"),
        poolclass=DeadlinePool,
        pool_size=pool_size,
        max_overflow=2,
        pool_timeout=POOL_SECONDS,
        pool_pre_ping=False,
        pool_recycle=1800,
        # The linter reports correlated subqueries as cartesian products, and takes time.
        enable_from_linting=False,
        # Values of statements are personal data, which the text of an error must not quote.
        hide_parameters=True,
        connect_args={**extra, **{name: value for name, value in CONNECTING.items() if name not in address.query}},
        **more,
    )
    enforce_deadline(engine, timeout_seconds)
    sa.event.listen(engine, "do_connect", _connect_in_turn)
    sa.event.listen(engine, "checkout", _refuse_dead_connection)
    return engine


def _connect_in_turn(dialect: Any, _record: object, given: Any, named: dict[str, Any]) -> Any:
    """Connects to the first of several hosts that accepts; None leaves a single host to SQLAlchemy.

    libpq goes on from a host that refuses, but, where it does not wait itself (`wait_for_database`), not from one that
    is silent.
    """
    hosts, ports = (str(named.get(name, "")).split(",") for name in ("host", "port"))
    if len(hosts) == 1:
        return None
    for number, host in enumerate(hosts, 1):
        try:
            # One port stands for all hosts.
            return dialect.connect(*given, **{**named, "host": host, "port": ports[min(number, len(ports)) - 1]})
        except psycopg2.OperationalError:
            if number == len(hosts):
                raise
            require_time_left()
    return None


def _refuse_dead_connection(driver: Any, record: Any, _proxy: object) -> None:
    """Makes the pool connect again if the server has ended a session while it was idle. Nothing else arrives there, so
    there is nothing to read otherwise."""
    if record.info.get(_USED) and not driver.closed:
        waiting = select.poll()
        waiting.register(driver.fileno(), select.POLLIN)
        if waiting.poll(0):
            # The connections of the pool have the same age, so they are probably dead too.
            raise InvalidatePoolError
    record.info[_USED] = True


def require_reachable(engine: sa.Engine) -> None:
    """Raises DatabaseUnavailableError if the engine cannot connect. The message is one sentence, without passwords."""
    try:
        with engine.connect() as connection:
            connection.execute(sa.text("SELECT 1"))
    except OperationalError as error:
        reason = str(error.orig).strip().splitlines()[0]
        # What SQLAlchemy hides is the password before the host alone.
        shown = hide_passwords(engine.url.set(drivername="postgresql").render_as_string(hide_password=True))
        raise DatabaseUnavailableError(f"the database at {shown} does not answer: {reason}") from None


def require_reading(engine: sa.Engine) -> None:
    """Raises SettingError if a transaction of `engine` could write or does not have one snapshot, because a pooler does
    not pass on the settings of a session. `engine`: of `make_reading_engine`."""
    query = sa.text("SELECT current_setting('transaction_isolation'), current_setting('transaction_read_only')")
    with engine.connect() as connection:
        if tuple(connection.execute(query).one()) != tuple(_SNAPSHOTS.values()):
            raise SettingError(SESSIONS_IGNORE_SETTINGS)
