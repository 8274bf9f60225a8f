"""A table is locked for longer than a query may take: 503 is answered, and no worker dies of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from roster_service.db.deadline import GRACE_SECONDS
from roster_service.server.gunicorn_app import make_options
from roster_service.settings import Settings

from .services import INTERFACES, Filled, Service, assert_busy, assert_served, serving

pytestmark = pytest.mark.shows(
    "Load",
    "Behind a locked or frozen database, a request is answered 503 in a bounded time from its arrival.",
)

LATER_PAGE, RECORD = "/users?limit=2&offset=2", "/users/spr-student-1"
# What is locked -> what then cannot be answered.
LOCKED = {
    "users": [("v1p1", "/users"), ("v1p2", LATER_PAGE), ("v1p1", RECORD), ("students", "")],
    "oauth_clients": [("token", ""), ("v1p1", LATER_PAGE), ("v1p2", RECORD)],
    "api_keys": [("login", ""), ("students", "")],
    "signing_keys": [("token", ""), ("login", "")],
}


@pytest.fixture(scope="module")
def service(filled: Filled, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(filled.url, filled.credentials, tmp_path_factory.mktemp("home"), request_seconds=1) as made:
        made.get_tokens()
        # On a busy machine, the first requests of a worker may take longer than that second.
        for interface in INTERFACES * 5:
            made.ask(interface)
        yield made


@pytest.mark.parametrize("table", LOCKED)
def test_a_locked_table_is_503_and_kills_no_worker(service: Service, filled: Filled, table: str) -> None:
    assert_served(service)
    workers = service.workers
    with filled.engine.begin() as connection:
        connection.execute(sa.text(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE"))
        for interface, path in LOCKED[table]:
            assert_busy(interface, service.ask(interface, path))
    assert_served(service)
    assert service.workers == workers


@pytest.mark.parametrize("seconds", [1, 10, 30, 3600])
def test_a_worker_has_time_for_the_longest_request(seconds: int) -> None:
    assert make_options(Settings(request_seconds=seconds))["timeout"] > seconds + GRACE_SECONDS
