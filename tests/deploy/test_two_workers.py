"""The limits of a vendor over two real workers: how many requests pass, and what another vendor notices."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa

from roster_service.accounts import vendors
from roster_service.auth.credentials.api_keys import Allowance
from roster_service.auth.throttling.limits import RosteringAllowance
from tests.actors import TESTER
from tests.faults.services import DISTRICT, Service, add_credentials, fill, serving

pytestmark = [
    pytest.mark.long_with(),
    pytest.mark.shows(
        "Load",
        "A vendor with many connections leaves a worker to the others; a killed one gives its slot back.",
    ),
]
CONNECTIONS = 12
VENDOR_DEFAULTS = Allowance(None, None, None)


def ask_at_once(service: Service, requests: int) -> Counter[int]:
    """The statuses of so many requests over several connections."""
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        return Counter(pool.map(lambda _: service.ask("v1p2").status, range(requests)))


def test_two_workers_let_as_many_requests_through_as_the_burst(engine: sa.Engine, tmp_path: Path) -> None:
    url = engine.url.render_as_string(hide_password=False)
    credentials = fill(engine)
    with engine.begin() as connection:
        limited = RosteringAllowance(requests_per_second=1, burst=90, at_once=None)
        vendors.change_allowance(connection, TESTER, credentials.account.email, VENDOR_DEFAULTS, limited)
    with serving(url, credentials, tmp_path) as service:
        service.get_tokens()
        began = time.monotonic()
        statuses = ask_at_once(service, 150)
        # In this time, requests of the beginning leave the window.
        assert time.monotonic() - began < 90
    assert statuses == {200: 90, 429: 60}


def test_a_vendor_with_many_connections_leaves_a_worker_to_another(engine: sa.Engine, tmp_path: Path) -> None:
    url = engine.url.render_as_string(hide_password=False)
    credentials = fill(engine)
    others = add_credentials(engine, "modest", [DISTRICT])
    with serving(url, credentials, tmp_path) as service:
        service.get_tokens()
        # Alone, it is never refused.
        assert ask_at_once(service, 200) == {200: 200}
        modest = service.call_as(others)
        modest.get_tokens()
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(lambda: Counter(modest.ask("v1p2").status for _ in range(60)))
            statuses = ask_at_once(service, 400)
            assert asked.result() == {200: 60}
    assert set(statuses) == {200, 429}
