"""Statements in one message: one transaction that reads, one snapshot, and nothing left behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from psycopg2.errors import DivisionByZero, QueryCanceled
from sqlalchemy.exc import DataError, DBAPIError

from roster_service.db.engine import make_reading_engine
from roster_service.db.prepared_statements import may_prepare
from roster_service.db.round_trip import Call, RoundTrips
from tests.conditions import wait_for

KEY = 7
SETTINGS = (
    "SELECT current_setting('transaction_isolation') AS level, current_setting('transaction_read_only') AS reading, "
    "current_setting('statement_timeout') AS timeout, current_setting('jit') AS jit, "
    "current_setting('work_mem') AS memory, current_setting('roster.visibility_key', true) AS key"
)
INSIDE = ("repeatable read", "on", "30s", "off", "64MB", "a key")
KEEP = Call(sa.text("SELECT set_config('roster.visibility_key', 'a key', true)"), {})

SHORT = Call(sa.text("SELECT set_config('statement_timeout', '500ms', true)"), {})


@pytest.fixture(params=[True, False], ids=["prepared", "plain"])
def reading(database_url: str, request: pytest.FixtureRequest) -> Iterator[sa.Engine]:
    """Of sessions of its own, or of those that a pooler hands out."""
    engine = make_reading_engine(database_url, statement_seconds=30, pool_size=1, own_sessions=request.param)
    yield engine
    engine.dispose()


@pytest.fixture
def reader(reading: sa.Engine) -> Iterator[RoundTrips]:
    """One session that reads."""
    round_trips = RoundTrips(reading)
    yield round_trips
    round_trips.close()


def test_the_rows_are_those_of_the_last_call(reader: RoundTrips) -> None:
    first = Call(sa.text("SELECT CAST(:a AS text)").bindparams(sa.bindparam("a", type_=sa.Text)), {"a": "first"})
    text = "SELECT CAST(:a AS text) AS bound, 7 % 4 AS rest, '50 %' AS half"
    last = Call(sa.text(text), {"a": "it's 50 % \\ of :b $1", "unasked": 1})
    for _ in range(7):
        (row,) = reader.fetch_last(first, last)
        assert (row.bound, row.rest, row.half) == ("it's 50 % \\ of :b $1", 3, "50 %")


def test_all_of_it_is_one_reading_transaction_that_leaves_nothing_of_the_caller(
    reader: RoundTrips, reading: sa.Engine
) -> None:
    settings = Call(sa.text(SETTINGS), {})
    # A session of its own has been told from the beginning.
    session = INSIDE[:5] if may_prepare(reading) else ("read committed", "off", "0", "on", "4MB")
    for _ in range(2):
        assert reader.fetch_last(KEEP, settings) == [INSIDE]
        with reader._own.driver.cursor() as cursor:
            cursor.execute(SETTINGS)
            *reported, key = cursor.fetchone()
        assert (*reported, key or None) == (*session, None)


def test_it_cannot_write(reader: RoundTrips) -> None:
    with pytest.raises(DBAPIError, match="read-only transaction"):
        reader.fetch_last(Call(sa.text("SELECT nextval(pg_get_serial_sequence('vendors', 'id'))"), {}))


def test_what_commits_between_two_statements_is_seen_by_neither(reader: RoundTrips, engine: sa.Engine) -> None:
    found: list[object] = []
    revision = "SELECT revision FROM roster_state"
    calls = [
        Call(sa.text(statement), {"key": KEY})
        for statement in (revision, "SELECT pg_advisory_xact_lock(:key)", revision)
    ]
    with engine.connect() as holder, engine.connect() as other:
        before = other.scalar(sa.text(revision))
        holder.execute(sa.text("SELECT pg_advisory_lock(:key)"), {"key": KEY})
        asking = threading.Thread(target=lambda: found.append(reader.fetch_last(*calls)))
        asking.start()
        waiting = sa.text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
        wait_for(lambda: other.scalar(waiting) == 1)
        other.execute(sa.text("UPDATE roster_state SET revision = revision + 1"))
        other.commit()
        holder.execute(sa.text("SELECT pg_advisory_unlock(:key)"), {"key": KEY})
        asking.join()
    assert found == [[(before,)]]
    assert reader.fetch_last(calls[0]) == [(before + 1,)]


@pytest.mark.parametrize(
    ("statement", "kind"),
    [("SELECT 1 / CAST(:n AS integer)", DivisionByZero), ("SELECT pg_sleep(5 - CAST(:n AS integer))", QueryCanceled)],
)
def test_a_failure_is_reported_without_values_and_the_session_goes_on(
    reader: RoundTrips, statement: str, kind: type[Exception]
) -> None:
    with pytest.raises(DBAPIError) as caught:
        reader.fetch_last(KEEP, SHORT, Call(sa.text(statement), {"n": 0}))
    assert isinstance(caught.value.orig, kind)
    assert isinstance(caught.value, DataError) is (kind is DivisionByZero)
    assert reader.fetch_last(Call(sa.text("SELECT 1"), {})) == [(1,)]


def terminate(engine: sa.Engine, pid: int) -> None:
    """Ends a session, as a restart of the server does."""
    with engine.connect() as connection:
        assert connection.scalar(sa.text("SELECT pg_terminate_backend(:pid, 5000)"), {"pid": pid})


def test_what_a_dead_connection_did_not_answer_the_next_one_does(reader: RoundTrips, engine: sa.Engine) -> None:
    call = Call(sa.text("SELECT pg_backend_pid()"), {})
    for _ in range(2):
        ((pid,),) = reader.fetch_last(call)
        terminate(engine, pid)
        assert reader.fetch_last(call) != [(pid,)]


def test_a_round_trip_that_ends_its_connection_is_sent_twice_at_most(reader: RoundTrips) -> None:
    """The second failure is told."""
    with pytest.raises(DBAPIError):
        reader.fetch_last(Call(sa.text("SELECT pg_terminate_backend(pg_backend_pid())"), {}))
    assert reader.fetch_last(Call(sa.text("SELECT 1"), {})) == [(1,)]


def test_plans_of_a_function_of_another_version_are_made_anew(reader: RoundTrips, engine: sa.Engine) -> None:
    """An upgrade under a running worker: what was planned before cannot be run."""
    call = Call(sa.text("SELECT * FROM of_the_tests"), {})
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE of_the_tests AS SELECT 1 AS one"))
    for _ in range(2):
        assert reader.fetch_last(call) == [(1,)]
    with engine.begin() as connection:
        connection.execute(sa.text("ALTER TABLE of_the_tests ADD COLUMN two text DEFAULT 'two'"))
    assert reader.fetch_last(call) == [(1, "two")]


def test_a_statement_that_is_not_kept_is_read_in_the_transaction_of_the_first(
    reader: RoundTrips, reading: sa.Engine
) -> None:
    own = sa.text("SELECT current_setting('roster.visibility_key', true), CAST(:a AS text)")
    for value in ("it's", "50 %"):
        rows = reader.fetch_once(KEEP, own.bindparams(sa.bindparam("a", type_=sa.Text)), {"a": value})
        assert [tuple(row) for row in rows] == [("a key", value)]
    with reading.connect() as connection:
        kept = connection.execute(sa.text("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%CAST%'"))
        assert kept.scalar_one() == 0


def test_each_thread_has_a_connection_that_it_keeps_and_none_of_the_pool(
    reader: RoundTrips, reading: sa.Engine
) -> None:
    call = Call(sa.text("SELECT pg_backend_pid()"), {})
    found: list[object] = []

    def ask() -> None:
        found.append([reader.fetch_last(call) for _ in range(2)])
        reader.close()

    threads = [threading.Thread(target=ask) for _ in range(4)]
    with reading.connect() as connection:
        pooled = connection.scalar(sa.text("SELECT pg_backend_pid()"))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert all(first == second for first, second in found)  # type: ignore[misc]
    assert len({str(pair) for pair in found}) == len(threads)
    assert [(pooled,)] not in [pair[0] for pair in found]  # type: ignore[index]


def test_a_connection_that_is_closed_is_made_anew(reader: RoundTrips) -> None:
    call = Call(sa.text("SELECT pg_backend_pid()"), {})
    first = reader.fetch_last(call)
    reader.close()
    reader.close()
    assert reader.fetch_last(call) != first
