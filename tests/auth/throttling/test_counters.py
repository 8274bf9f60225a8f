"""The counters while their database is away: which throttles pass, which count on, and how long a request waits."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from roster_service.auth.throttling import counters as module
from roster_service.auth.throttling.counters import PAUSE_SECONDS, THROTTLES, Counters, WhenAway, Window
from roster_service.auth.throttling.throttles import VENDOR_ACCOUNT, LoginAttempt
from roster_service.db.deadline import limit_time
from roster_service.db.engine import make_counting_engine
from roster_service.db.tables import rate_hits


class FailingDatabase:
    """Counters in a database that fails while `is_away`, and takes no writes while `is_read_only`."""

    is_away = False
    is_read_only = False
    asked = 0

    def __init__(self, url: str) -> None:
        self.engine = make_counting_engine(url)
        self.counters = Counters(self.engine)

        @sa.event.listens_for(self.engine, "before_cursor_execute")
        def fail(_connection: object, _cursor: object, statement: str, *_given: object) -> None:
            self.asked += 1
            if self.is_away or (self.is_read_only and "take_hits" in statement):
                raise sa.exc.OperationalError("away", None, OSError())


@pytest.fixture
def database(database_url: str) -> Iterator[FailingDatabase]:
    made = FailingDatabase(database_url)
    yield made
    made.engine.dispose()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds of the breaker, as a list of one number."""
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


@pytest.mark.shows("Load", "While the counters are away, requests pass, and failed logins are still slowed.")
@pytest.mark.parametrize("throttle", THROTTLES)
def test_each_throttle_does_in_an_outage_what_its_row_says(database: FailingDatabase, throttle: str) -> None:
    database.is_away = True
    counters, window = database.counters, Window(throttle, 2)
    hits = [counters.take(window, "one") for _ in range(4)]
    counts_alone = THROTTLES[throttle].when_away is WhenAway.COUNTS_ALONE
    assert hits == ([True, True, False, False] if counts_alone else [True] * 4)
    assert (counters.find_wait(window, "one") > 0) is counts_alone
    assert counters.find_wait(window, "two") == 0
    assert (counters.read(window, "one") is None) is not counts_alone


def test_a_hit_that_a_worker_counted_alone_leaves_its_window_too(
    database: FailingDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(module.time, "time", lambda: now[0])
    database.is_away = True
    counters, window = database.counters, Window("login-key", 2)
    found = []
    for seconds in (0, 20, 30, 60, 79, 80):
        now[0] = 1000.0 + seconds
        found.append((counters.take(window, "one"), counters.find_wait(window, "one")))
    assert found == [(True, 0), (True, 40), (False, 30), (True, 20), (False, 1), (True, 40)]


@pytest.mark.shows("Load", "A database that cannot count is asked once, and then left alone for a pause.")
def test_a_database_that_failed_is_left_alone_for_the_pause(database: FailingDatabase, clock: list[float]) -> None:
    counters, window = database.counters, Window("vendor", 9)
    database.is_away = True
    for seconds in (0, PAUSE_SECONDS / 2, PAUSE_SECONDS - 0.1, PAUSE_SECONDS, PAUSE_SECONDS * 2 - 0.1):
        clock[0] = seconds
        counters.take(window, "one")
    assert database.asked == 2


def test_a_database_that_is_back_counts_on_where_it_was(database: FailingDatabase, clock: list[float]) -> None:
    counters, window = database.counters, Window("login-key", 3)
    counters.take(window, "one")
    database.is_away = True
    assert [counters.take(window, "one") for _ in range(4)] == [True, True, True, False]
    database.is_away, clock[0] = False, PAUSE_SECONDS
    assert [counters.take(window, "one") for _ in range(3)] == [True, True, False]


@pytest.mark.shows("Load", "A guesser has no more tries while the database takes no writes.")
def test_reads_that_pass_do_not_forget_what_a_worker_counts_alone(
    database: FailingDatabase, clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    counters, login = database.counters, LoginAttempt.of_vendor(1, "ann@vendors.example")
    database.is_read_only = True
    tried = 0
    for clock[0] in range(60):
        if not login.find_wait(counters):
            tried += 1
            login.count_failure(counters)
        counters.read(Window("vendor", 9), "one")
    assert tried == VENDOR_ACCOUNT.most
    assert len(caplog.records) == 1
    database.is_read_only = False
    assert counters.take(Window("vendor", 9), "one")
    assert login.find_wait(counters) == 0


def test_an_outage_is_one_line_and_its_end_another(
    database: FailingDatabase, clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    counters, window = database.counters, Window("vendor", 9)
    for database.is_away in (False, True, True, False, False, True):
        counters.take(window, "one")
        clock[0] += PAUSE_SECONDS
    away, back = (
        "throttle: the counters cannot be reached (OperationalError)",
        "throttle: the counters can be reached again",
    )
    assert [record.getMessage() for record in caplog.records] == [away, back, away]
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


def test_hits_of_a_clock_that_was_ahead_fill_no_window(database: FailingDatabase, engine: sa.Engine) -> None:
    counters, window = database.counters, Window("operator-account", 2)
    assert [counters.take(window, "one") for _ in range(3)] == [True, True, False]
    with engine.begin() as connection:
        connection.execute(sa.update(rate_hits).values(hit_at=rate_hits.c.hit_at + sa.text("interval '1 hour'")))
    assert counters.find_wait(window, "one") == 0
    assert [counters.take(window, "one") for _ in range(3)] == [True, True, False]
    assert 0 < counters.find_wait(window, "one") <= window.seconds


@pytest.mark.parametrize("ahead", [-7200, 7200])
def test_the_wait_is_that_of_the_database_whatever_clock_the_worker_has(
    database: FailingDatabase, monkeypatch: pytest.MonkeyPatch, ahead: float
) -> None:
    monkeypatch.setattr(module.time, "time", lambda real=time.time: real() + ahead)
    counters, window = database.counters, Window("token-client", 1, 3600)
    counters.take(window, "one")
    assert window.seconds / 2 < counters.find_wait(window, "one") <= window.seconds


@pytest.mark.shows("Load", "A request whose time is up is counted like any other, and opens no throttle.")
def test_a_request_whose_time_is_up_is_counted(database: FailingDatabase, caplog: pytest.LogCaptureFixture) -> None:
    counters, window = database.counters, Window("orderings", 3)
    with limit_time(0):
        assert [counters.take(window, "one", amount) for amount in (2, 2)] == [True, False]
        state = counters.read(window, "one")
    assert state is not None
    assert state.remaining == 1
    assert not caplog.records
