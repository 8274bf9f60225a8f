"""Throttling: exact counting under concurrency, the headers, and a vendor's own limits."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from roster_service.auth.credentials.api_keys import Allowance
from roster_service.auth.throttling.counters import Counters, Window, delete_old_windows
from roster_service.auth.throttling.limits import DAY_SECONDS, make_windows
from roster_service.db.engine import make_counting_engine
from tests.vendor.client import VendorClient
from tests.vendor.conftest import Served

LEA = {"districtlea": "17-0042"}
FEW = Allowance(requests_per_second=1, burst=60, requests_per_day=None)


@pytest.fixture
def counters(database_url: str) -> Iterator[Counters]:
    """Counters in a database of this test's own."""
    engine = make_counting_engine(database_url)
    yield Counters(engine)
    engine.dispose()


def count_left(counters: Counters, window: Window, subject: str) -> int:
    state = counters.read(window, subject)
    assert state is not None
    return state.remaining


@pytest.mark.parametrize("limit", [1, 7, 100])
def test_concurrent_hits_are_counted_exactly(database_url: str, limit: int) -> None:
    """Whatever the number of connections, as many hits as the limit has are let through, and no other."""
    window = Window("vendor", limit, DAY_SECONDS)
    engines = [make_counting_engine(database_url) for _ in range(4)]
    workers = [Counters(engine) for engine in engines]
    with ThreadPoolExecutor(8) as pool:
        passed = list(pool.map(lambda number: workers[number % 4].take(window, "one"), range(limit + 50)))
    assert sum(passed) == limit
    assert count_left(workers[0], window, "one") == 0
    for engine in engines:
        engine.dispose()


def test_a_hit_counts_until_it_leaves_the_window(database_url: str, counters: Counters) -> None:
    """Time is moved on by moving the hits back."""
    window = Window("vendor", 3)
    assert [counters.take(window, "one") for _ in range(4)] == [True, True, True, False]
    engine = make_counting_engine(database_url)
    with engine.connect() as connection:
        connection.execute(sa.text("UPDATE rate_hits SET hit_at = hit_at - interval '61 seconds' WHERE slot = 0"))
    assert count_left(counters, window, "one") == 1
    assert [counters.take(window, "one") for _ in range(2)] == [True, False]
    with engine.connect() as connection:
        connection.execute(sa.text("UPDATE rate_hits SET hit_at = hit_at - interval '61 seconds'"))
    assert count_left(counters, window, "one") == 3
    assert [counters.take(window, "one") for _ in range(4)] == [True, True, True, False]
    engine.dispose()


def test_several_hits_at_once_fit_or_not(counters: Counters) -> None:
    window = Window("vendor", 5, DAY_SECONDS)
    assert [counters.take(window, "one", amount) for amount in (6, 3, 3, 2, 1)] == [False, True, False, True, False]


def test_counters_do_not_touch_each_other(counters: Counters) -> None:
    hour, day = Window("vendor", 1, 3600), Window("vendor", 1, DAY_SECONDS)
    many, others = Window("vendor", 2, DAY_SECONDS), Window("rostering", 1, DAY_SECONDS)
    counted = [(day, "one"), (day, "two"), (hour, "one"), (many, "one"), (others, "one")]
    assert [counters.take(window, subject) for window, subject in counted] == [True] * 5
    assert [counters.take(window, subject) for window, subject in counted] == [False, False, False, True, False]


def test_counters_that_nobody_hits_any_more_are_forgotten(engine: sa.Engine, counters: Counters) -> None:
    for name in ("old", "new"):
        counters.take(Window("vendor", 5, DAY_SECONDS), name)
    with engine.begin() as connection:
        connection.execute(
            sa.text("UPDATE rate_windows SET last_hit = now() - interval '3 days' WHERE key LIKE '%old%'")
        )
        delete_old_windows(connection)
        kept = (
            connection.execute(sa.text("SELECT key FROM rate_windows UNION SELECT key FROM rate_hits")).scalars().all()
        )
    assert [key.split("/")[1] for key in kept] == ["new"]


@pytest.mark.parametrize(
    ("allowance", "windows"),
    [
        pytest.param(Allowance(None, None, None), [(20, 2), (100_000, DAY_SECONDS)], id="the default"),
        pytest.param(Allowance(50, None, None), [(100, 2), (100_000, DAY_SECONDS)], id="more a second"),
        pytest.param(Allowance(10, 60, 500), [(60, 6), (500, DAY_SECONDS)], id="all three"),
    ],
)
def test_an_allowance_is_two_windows(allowance: Allowance, windows: list[tuple[int, int]]) -> None:
    assert [(window.most, window.seconds) for window in make_windows(allowance)] == windows


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
