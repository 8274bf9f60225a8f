"""Throttling: exact counting under concurrency, the headers, and a vendor's own limits."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa
from limits import RateLimitItemPerDay, RateLimitItemPerMinute
from limits.strategies import MovingWindowRateLimiter

from roster_service.auth.credentials.api_keys import Allowance
from roster_service.auth.throttling.counters import PostgresStorage, delete_old_windows
from roster_service.auth.throttling.limits import make_windows
from roster_service.db.engine import make_counting_engine
from tests.vendor.client import VendorClient
from tests.vendor.conftest import Served

LEA = {"districtlea": "17-0042"}
FEW = Allowance(requests_per_second=1, burst=60, requests_per_day=None)


@pytest.fixture
def storage(database_url: str) -> Iterator[PostgresStorage]:
    """Counters in a database of this test's own, read by several connections."""
    engine = make_counting_engine(database_url)
    yield PostgresStorage(engine=engine)
    engine.dispose()


@pytest.fixture
def windows(storage: PostgresStorage) -> MovingWindowRateLimiter:
    """The strategy on them."""
    return MovingWindowRateLimiter(storage)


@pytest.mark.parametrize("limit", [1, 7, 100])
def test_concurrent_hits_are_counted_exactly(database_url: str, limit: int) -> None:
    """Whatever the number of connections, as many hits as the limit has are let through, and no other."""
    item = RateLimitItemPerDay(limit)
    engines = [make_counting_engine(database_url) for _ in range(4)]
    limiters = [MovingWindowRateLimiter(PostgresStorage(engine=engine)) for engine in engines]
    with ThreadPoolExecutor(8) as pool:
        passed = list(pool.map(lambda number: limiters[number % 4].hit(item, "one"), range(limit + 50)))
    assert sum(passed) == limit
    assert limiters[0].get_window_stats(item, "one").remaining == 0
    for engine in engines:
        engine.dispose()


def test_a_hit_counts_until_it_leaves_the_window(database_url: str, windows: MovingWindowRateLimiter) -> None:
    """Time is moved on by moving the hits back."""
    item = RateLimitItemPerMinute(3)
    assert [windows.hit(item, "one") for _ in range(4)] == [True, True, True, False]
    engine = make_counting_engine(database_url)
    with engine.connect() as connection:
        connection.execute(sa.text("UPDATE rate_hits SET hit_at = hit_at - interval '61 seconds' WHERE slot = 0"))
    assert windows.get_window_stats(item, "one").remaining == 1
    assert [windows.hit(item, "one") for _ in range(2)] == [True, False]
    with engine.connect() as connection:
        connection.execute(sa.text("UPDATE rate_hits SET hit_at = hit_at - interval '61 seconds'"))
    assert windows.get_window_stats(item, "one").remaining == 3
    assert [windows.hit(item, "one") for _ in range(4)] == [True, True, True, False]
    engine.dispose()


def test_several_hits_at_once_fit_or_not(windows: MovingWindowRateLimiter) -> None:
    item = RateLimitItemPerDay(5)
    assert [windows.hit(item, "one", cost=cost) for cost in (6, 3, 3, 2, 1)] == [False, True, False, True, False]


def test_counters_do_not_touch_each_other(windows: MovingWindowRateLimiter) -> None:
    item, other = RateLimitItemPerDay(1), RateLimitItemPerDay(2)
    assert [windows.hit(item, "one"), windows.hit(item, "two"), windows.hit(other, "one")] == [True] * 3
    windows.clear(item, "one")
    assert [windows.hit(item, "one"), windows.hit(item, "two")] == [True, False]


def test_counters_that_nobody_hits_any_more_are_forgotten(
    engine: sa.Engine, storage: PostgresStorage, windows: MovingWindowRateLimiter
) -> None:
    for name in ("old", "new"):
        windows.hit(RateLimitItemPerDay(5), name)
    with engine.begin() as connection:
        connection.execute(
            sa.text("UPDATE rate_windows SET last_hit = now() - interval '3 days' WHERE key LIKE '%old%'")
        )
        delete_old_windows(connection)
        kept = (
            connection.execute(sa.text("SELECT key FROM rate_windows UNION SELECT key FROM rate_hits")).scalars().all()
        )
    assert [key.split("/")[1] for key in kept] == ["new"]
    assert storage.check()
    assert storage.reset() == 1


@pytest.mark.parametrize(
    ("allowance", "windows"),
    [
        pytest.param(Allowance(None, None, None), ["20 per 2 second", "100000 per 1 day"], id="the default"),
        pytest.param(Allowance(50, None, None), ["100 per 2 second", "100000 per 1 day"], id="more a second"),
        pytest.param(Allowance(10, 60, 500), ["60 per 6 second", "500 per 1 day"], id="all three"),
    ],
)
def test_an_allowance_is_two_windows(allowance: Allowance, windows: list[str]) -> None:
    assert [str(window) for window in make_windows(allowance)] == windows


@pytest.mark.shows("Load", "The vendor interface counts requests per vendor, both paths together.")
def test_both_paths_count_together_and_headers_say_what_is_left(served: Served, client: VendorClient) -> None:
    account = served.add(allowance=FEW, grants={"spr-district": ()})
    token = client.token(account)
    answers = [client.students(account, token, LEA) for _ in range(59)]
    assert [answer.headers["RateLimit-Remaining"] for answer in answers] == [str(left) for left in range(58, -1, -1)]
    assert {answer.headers["RateLimit-Limit"] for answer in answers} == {"60"}
    for refused in (client.students(account, token, LEA), client.login(account), client.students(account, None, {})):
        assert refused.outcome == (429, "rate-limited")
        assert refused.headers["RateLimit-Remaining"] == "0"
        assert 1 <= int(refused.headers["Retry-After"]) <= 61
    # One vendor's limit is no other's.
    assert client.login(served.add(allowance=FEW, grants={"spr-district": ()})).status == 200


@pytest.mark.shows("Load", "The vendor interface counts requests per vendor, both paths together.")
def test_a_day_has_a_limit_too(served: Served, client: VendorClient) -> None:
    account = served.add(allowance=Allowance(None, None, 3), grants={"spr-district": ()})
    outcomes = [client.login(account).status for _ in range(4)]
    assert outcomes == [200, 200, 200, 429]
    assert int(client.login(account).headers["Retry-After"]) > 86_000


def test_what_has_no_good_key_is_not_counted(served: Served, client: VendorClient) -> None:
    account = served.add(allowance=FEW)
    for _ in range(3):
        client.login(account, api_key="none")
    assert client.login(account).headers["RateLimit-Remaining"] == "59"
