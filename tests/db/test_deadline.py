"""The deadline of a request: each thing that it waits for ends by then."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator

import psycopg2
import pytest
import sqlalchemy as sa
from psycopg2.errors import QueryCanceled
from psycopg2.extensions import set_wait_callback
from sqlalchemy.dialects.postgresql.psycopg2 import PGDialect_psycopg2
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from roster_service.db.deadline import (
    OverdueError,
    end_waits_at_the_deadline,
    find_time_left,
    limit_statement,
    limit_time,
)
from roster_service.db.engine import (
    make_counting_engine,
    make_engine,
    make_ordering_engine,
    make_reading_engine,
    make_startup_engine,
)
from roster_service.db.round_trip import Call, RoundTrips

# Long beside the deadlines of these tests; nothing waits so long.
SESSION_SECONDS = 300
TIMEOUT = "SELECT current_setting('statement_timeout')"
ENGINES: dict[str, Callable[[str], sa.Engine]] = {
    "own sessions": lambda url: make_reading_engine(
        url, statement_seconds=SESSION_SECONDS, pool_size=1, own_sessions=True
    ),
    "pooled sessions": lambda url: make_reading_engine(
        url, statement_seconds=SESSION_SECONDS, pool_size=1, own_sessions=False
    ),
    "orderings": lambda url: make_ordering_engine(url, statement_seconds=SESSION_SECONDS),
    "counters": make_counting_engine,
    "start": make_startup_engine,
    "commands": make_engine,
}


@pytest.fixture(params=ENGINES)
def limited(database_url: str, request: pytest.FixtureRequest) -> Iterator[sa.Engine]:
    """An engine of each kind."""
    made = ENGINES[request.param](database_url)
    yield made
    made.dispose()


def test_a_statement_gets_the_time_that_is_left(limited: sa.Engine) -> None:
    with limited.connect() as connection:
        connection.execute(sa.text("SELECT 1"))
        with limit_time(0.2), pytest.raises(OperationalError) as caught:
            connection.execute(sa.text("SELECT pg_sleep(:seconds)"), {"seconds": SESSION_SECONDS})
        assert isinstance(caught.value.orig, QueryCanceled)
        connection.rollback()
        assert connection.scalar(sa.text("SELECT '100 %'")) == "100 %"


def test_a_round_trip_gets_the_time_that_is_left(database_url: str) -> None:
    engine = ENGINES["own sessions"](database_url)
    trips = RoundTrips(engine)
    sleep, timeout = Call(sa.text(f"SELECT pg_sleep({SESSION_SECONDS})"), {}), Call(sa.text(TIMEOUT), {})
    with limit_time(0.2), pytest.raises(DBAPIError) as caught:
        trips.fetch_last(sleep)
    assert isinstance(caught.value.orig, QueryCanceled)
    # The session keeps nothing of it.
    assert trips.fetch_last(timeout) == [("5min",)]
    trips.close()
    engine.dispose()


def test_a_connection_of_the_pool_is_waited_for_until_the_deadline(limited: sa.Engine) -> None:
    with contextlib.ExitStack() as taken:
        for _ in range(limited.pool.size() + limited.pool._max_overflow):  # type: ignore[attr-defined]
            taken.enter_context(limited.connect())
        with limit_time(0.1), pytest.raises(PoolTimeoutError):
            limited.connect()


def test_after_the_deadline_nothing_is_begun(limited: sa.Engine) -> None:
    with limit_time(0):
        with pytest.raises(OverdueError):
            limited.connect()
        with pytest.raises(OverdueError):
            limit_statement(SESSION_SECONDS)


def test_the_earlier_of_two_deadlines_counts() -> None:
    with limit_time(0):
        with limit_time(60):
            assert find_time_left() <= 0
        assert find_time_left() <= 0
    with limit_time(60):
        with limit_time(0):
            assert find_time_left() <= 0
        assert find_time_left() > 0
    assert find_time_left() == float("inf")


@pytest.fixture
def worker() -> Iterator[None]:
    """This process waits for databases as a worker does."""
    end_waits_at_the_deadline()
    yield
    set_wait_callback(None)


@pytest.fixture
def mute_url() -> Iterator[str]:
    """The address of a server that the system accepts connections for, and that never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"postgresql://roster@127.0.0.1:{server.getsockname()[1]}/roster?sslmode=disable"


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize(
    ("seconds", "parameter"),
    [
        pytest.param(SESSION_SECONDS, "&connect_timeout=1", id="the timeout of the address"),
        pytest.param(-1.5, "&connect_timeout=300", id="the deadline and its grace"),
    ],
)
def test_a_server_that_does_not_answer_is_given_up(mute_url: str, seconds: float, parameter: str) -> None:
    engine = make_engine(mute_url + parameter)
    with limit_time(seconds), pytest.raises((OperationalError, psycopg2.OperationalError), match="in time"):
        engine.raw_connection() if seconds > 0 else psycopg2.connect(mute_url + parameter)


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("refused", [True, False], ids=["a host that refuses", "a host that is silent"])
def test_the_next_of_several_hosts_is_tried(database_url: str, mute_url: str, refused: bool) -> None:
    here, mute = sa.make_url(database_url), sa.make_url(mute_url)
    given = PGDialect_psycopg2().create_connect_args(here)[1]
    ports = f"{1 if refused else mute.port},{given.get('port', 5432)}"
    several = {"host": f"127.0.0.1,{given['host']}", "port": ports, "connect_timeout": "1"}
    engine = make_engine(here.set(host=None, port=None, query=several).render_as_string(hide_password=False))
    with limit_time(60), engine.connect() as connection:
        assert connection.scalar(sa.text("SELECT current_database()")) == here.database
    engine.dispose()


@pytest.mark.usefixtures("worker")
def test_a_worker_reads_and_writes_as_others_do(limited: sa.Engine) -> None:
    values = {"text": "é" * 3_000_000}
    with limited.begin() as connection:
        assert connection.scalar(sa.text("SELECT CAST(:text AS text)"), values) == values["text"]


def test_a_session_that_was_ended_while_it_was_idle_is_not_used(limited: sa.Engine, engine: sa.Engine) -> None:
    for _ in range(2):
        with limited.connect() as connection:
            pid = connection.scalar(sa.text("SELECT pg_backend_pid()"))
        with engine.connect() as other:
            assert other.scalar(sa.text("SELECT pg_terminate_backend(:pid, 5000)"), {"pid": pid})
        with limited.connect() as connection:
            assert connection.scalar(sa.text("SELECT pg_backend_pid()")) != pid
