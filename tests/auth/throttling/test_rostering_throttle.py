"""The lots in which workers take the requests of a vendor: how exact they are, and how often the counters are asked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from roster_service.accounts import vendors
from roster_service.auth.credentials.api_keys import Allowance
from roster_service.auth.throttling import throttles as module
from roster_service.auth.throttling.counters import Counters, Window
from roster_service.auth.throttling.limits import LOTS, ROSTERING_DEFAULTS, RosteringAllowance, make_lots
from roster_service.auth.throttling.throttles import LOT_SECONDS, RosteringThrottle
from roster_service.db.engine import make_counting_engine
from tests.actors import TESTER

EMAIL = "vendor@vendors.example"
WORKERS = 3


class AskedCounters(Counters):
    """Counts how often they are asked for a lot."""

    asked = 0

    def take(self, window: Window, subject: str, amount: int = 1) -> bool:
        """Counts the call too."""
        self.asked += 1
        return super().take(window, subject, amount)


@pytest.fixture
def counters(database_url: str) -> Iterator[AskedCounters]:
    counting = make_counting_engine(database_url)
    yield AskedCounters(counting)
    counting.dispose()


@pytest.fixture
def workers(engine: sa.Engine, counters: AskedCounters) -> list[RosteringThrottle]:
    return [RosteringThrottle(counters, engine, WORKERS) for _ in range(WORKERS)]


def add_vendor(engine: sa.Engine, allowance: RosteringAllowance) -> int:
    with engine.begin() as connection:
        vendors.add_vendor(connection, TESTER, EMAIL, "vendor")
        return vendors.change_allowance(connection, TESTER, EMAIL, Allowance(None, None, None), allowance).id


def admit(worker: RosteringThrottle, vendor_id: int) -> bool:
    state = worker.count(vendor_id)
    assert state is not None
    return state.admitted


@pytest.mark.parametrize(
    ("allowance", "size", "window"),
    [
        pytest.param(ROSTERING_DEFAULTS, 60, Window("rostering", 100, 2), id="the default"),
        pytest.param(
            RosteringAllowance(5, None, None), 1, Window("rostering", 10, 2), id="a small burst in single requests"
        ),
        pytest.param(
            RosteringAllowance(50, 250, None), 2, Window("rostering", 125, 5), id="a burst of several seconds"
        ),
    ],
)
def test_an_allowance_is_a_window_of_lots(allowance: RosteringAllowance, size: int, window: Window) -> None:
    assert make_lots(allowance) == (size, window)


@pytest.mark.shows(
    "Load",
    "The rostering interface counts requests per vendor over all workers, and bounds those at the same time.",
)
@pytest.mark.parametrize("burst", [40, 1200])
def test_workers_count_together_to_one_lot_of_each(
    engine: sa.Engine, workers: list[RosteringThrottle], burst: int
) -> None:
    vendor_id = add_vendor(engine, RosteringAllowance(burst // 40, burst, None))
    admitted = [admit(workers[number % WORKERS], vendor_id) for number in range(burst + 50)]
    unused = (burst // LOTS) * WORKERS
    assert burst - unused <= sum(admitted) <= burst


def test_the_counters_are_asked_once_a_lot_and_not_during_a_refusal(
    engine: sa.Engine, workers: list[RosteringThrottle], counters: AskedCounters
) -> None:
    vendor_id = add_vendor(engine, RosteringAllowance(30, 1200, None))
    admitted = [admit(workers[0], vendor_id) for _ in range(1300)]
    assert sum(admitted) == 1200
    assert counters.asked == LOTS + 1


def test_a_limit_that_an_operator_changes_counts_within_seconds(
    engine: sa.Engine, workers: list[RosteringThrottle], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    vendor_id = add_vendor(engine, RosteringAllowance(100, 6000, None))
    assert admit(workers[0], vendor_id)
    assert workers[0].find_slots(vendor_id) is None
    with engine.begin() as connection:
        changed = RosteringAllowance(1, 60, at_once=4)
        vendors.change_allowance(connection, TESTER, EMAIL, Allowance(None, None, None), changed)
    now[0] += LOT_SECONDS
    assert [admit(workers[0], vendor_id) for _ in range(61)] == [True] * 60 + [False]
    assert workers[0].find_slots(vendor_id) == 4
