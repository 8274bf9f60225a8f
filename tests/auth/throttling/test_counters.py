"""The counters while their storage is away: which throttles pass, which count on, and how long a request waits."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage

from roster_service.auth.throttling import counters as module
from roster_service.auth.throttling.counters import PAUSE_SECONDS, THROTTLES, Counters, WhenAway, make_storage
from roster_service.db.engine import make_counting_engine
from tests.auth.throttling.silent_redis import SilentRedis, freeze_redis


class FailingStorage(MemoryStorage):
    """A storage that fails while `is_away`."""

    is_away = False
    asked = 0

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Counts, or fails."""
        self.asked += 1
        if self.is_away:
            raise ValueError("away")
        return super().acquire_entry(key, limit, expiry, amount)


@pytest.fixture
def storage() -> FailingStorage:
    return FailingStorage()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds of the breaker, as a list of one number."""
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def frozen() -> Iterator[SilentRedis]:
    with freeze_redis() as server:
        yield server


@pytest.mark.shows("Load", "While the counters are away, requests pass, and failed logins are still slowed.")
@pytest.mark.parametrize("namespace", THROTTLES)
def test_each_throttle_does_in_an_outage_what_its_row_says(storage: FailingStorage, namespace: str) -> None:
    storage.is_away = True
    counters, item = Counters(storage), RateLimitItemPerMinute(2, namespace=namespace)
    hits = [counters.hit(item, "one") for _ in range(4)]
    counts_alone = THROTTLES[namespace].when_away is WhenAway.COUNTS_ALONE
    assert hits == ([True, True, False, False] if counts_alone else [True] * 4)
    assert counters.has_room(item, "one") is not counts_alone
    assert (counters.find_wait(item, "one") > 0) is counts_alone
    assert (counters.read_window(item, "one") is None) is not counts_alone


@pytest.mark.shows("Load", "A Redis that does not answer is asked once, and then left alone for a pause.")
def test_a_storage_that_failed_is_left_alone_for_the_pause(storage: FailingStorage, clock: list[float]) -> None:
    counters, item = Counters(storage), RateLimitItemPerMinute(9, namespace="vendor")
    storage.is_away = True
    for seconds in (0, PAUSE_SECONDS / 2, PAUSE_SECONDS - 0.1, PAUSE_SECONDS, PAUSE_SECONDS * 2 - 0.1):
        clock[0] = seconds
        counters.hit(item, "one")
    assert storage.asked == 2


def test_a_storage_that_is_back_counts_on_where_it_was(storage: FailingStorage, clock: list[float]) -> None:
    counters, item = Counters(storage), RateLimitItemPerMinute(3, namespace="login-key")
    counters.hit(item, "one")
    storage.is_away = True
    assert [counters.hit(item, "one") for _ in range(4)] == [True, True, True, False]
    storage.is_away, clock[0] = False, PAUSE_SECONDS
    assert [counters.hit(item, "one") for _ in range(3)] == [True, True, False]


def test_an_outage_is_one_line_and_its_end_another(
    storage: FailingStorage, clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    counters, item = Counters(storage), RateLimitItemPerMinute(9, namespace="vendor")
    for storage.is_away in (False, True, True, False, False, True):
        counters.hit(item, "one")
        clock[0] += PAUSE_SECONDS
    away, back = "throttle: the counters cannot be reached (ValueError)", "throttle: the counters can be reached again"
    assert [record.getMessage() for record in caplog.records] == [away, back, away]
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


@pytest.mark.shows("Load", "A Redis that does not answer is asked once, and then left alone for a pause.")
def test_a_frozen_redis_is_asked_once_and_not_waited_for(frozen: SilentRedis) -> None:
    """Without a timeout, the first hit never returns."""
    engine = make_counting_engine("postgresql://nobody@127.0.0.1/none")
    counters, item = Counters(make_storage(engine, frozen.url)), RateLimitItemPerMinute(1, namespace="vendor")
    assert [counters.hit(item, "one") for _ in range(5)] == [True] * 5
    assert len(frozen.accepted) == 1


def test_a_redis_that_is_away_is_no_fault() -> None:
    engine = make_counting_engine("postgresql://nobody@127.0.0.1/none")
    with freeze_redis() as former:
        pass
    counters, item = Counters(make_storage(engine, former.url)), RateLimitItemPerMinute(1, namespace="token-address")
    assert [counters.hit(item, "one") for _ in range(5)] == [True] * 5
