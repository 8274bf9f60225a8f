"""The recipe of several machines: the core of the contract through all of them, and what they must agree on."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from werkzeug.datastructures import Headers

from roster_service.accounts import vendor_rights, vendors
from roster_service.auth.credentials.api_keys import Allowance
from roster_service.auth.throttling.limits import RosteringAllowance
from roster_service.db.engine import make_engine
from roster_service.feeds.feed_states import list_feed_ids
from roster_service.feeds.roster_state import publish
from sync_scripts.engine.load import load
from tests.actors import TESTER
from tests.conditions import wait_for
from tests.contract.client import ROOTS, Answer, RosterClient
from tests.contract.conftest import GRANTS, add_vendor
from tests.contract.test_paths import (
    test_a_collection_has_exactly_the_records_of_the_exports,
    test_a_record_is_found_by_its_id_exactly_where_its_collection_has_it,
    test_a_token_of_the_other_version_is_400,
    test_an_unknown_parent_has_an_empty_collection,
    test_an_unknown_record_is_a_404_that_names_it,
    test_exactly_the_scopes_of_the_path_open_it,
    test_the_answer_has_one_key,
    test_without_a_token_it_is_401,
)
from tests.deploy.machines import PROGRAMS, Machines, open_machines
from tests.deploy.proxy import Proxy
from tests.postgres.loaded import EXPORTS, FEEDS
from tests.sync.export_changes import column

# The core of the contract, which runs here too, with the client of this module. (nginx answers some refusals itself.)
__all__ = [
    "test_a_collection_has_exactly_the_records_of_the_exports",
    "test_a_record_is_found_by_its_id_exactly_where_its_collection_has_it",
    "test_a_token_of_the_other_version_is_400",
    "test_an_unknown_parent_has_an_empty_collection",
    "test_an_unknown_record_is_a_404_that_names_it",
    "test_exactly_the_scopes_of_the_path_open_it",
    "test_the_answer_has_one_key",
    "test_without_a_token_it_is_401",
]
pytestmark = pytest.mark.long_with(*PROGRAMS)
USERS = f"{ROOTS['v1p2']}/users"


class HttpClient:
    """The client of Flask's tests, over HTTPS through nginx."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy

    def test_client(self) -> HttpClient:
        """Itself."""
        return self

    def open(self, path: str, *, method: str = "GET", **sent: Any) -> HttpResponse:
        """A request. It is sent again where nginx asks to wait."""
        headers = dict(sent.get("headers") or {})
        if "content_type" in sent:
            headers["Content-Type"] = sent["content_type"]
        raw = sent.get("environ_overrides", {}).get("QUERY_STRING")
        target = path if raw is None else f"{path.partition('?')[0]}?{raw}"
        data = sent.get("data")
        while True:
            reply = self._proxy.ask(method, target, headers, data.encode() if isinstance(data, str) else data)
            if reply.status != 429 or b"from your address" not in reply.body:
                return HttpResponse(reply.status, Headers(list(reply.headers.items())), reply.body)
            time.sleep(int(reply.headers["Retry-After"]))

    def get(self, path: str) -> HttpResponse:
        """A GET."""
        return self.open(path)

    def post(self, path: str, **sent: Any) -> HttpResponse:
        """A POST."""
        return self.open(path, method="POST", **sent)


@dataclass(frozen=True)
class HttpResponse:
    """A response, with the names of Flask's."""

    status_code: int
    headers: Headers
    data: bytes

    def __enter__(self) -> HttpResponse:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def machines() -> Iterator[Machines]:
    """All machines, with nothing in the tables."""
    with open_machines() as started:
        yield started


@pytest.fixture(scope="module")
def owner(machines: Machines) -> Iterator[sa.Engine]:
    """An engine of the tables' owner, on the primary."""
    engine = make_engine(machines.owner_url)
    yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def client(machines: Machines, owner: sa.Engine) -> RosterClient:
    """A client of both districts, through nginx."""
    for feed, folder in FEEDS.items():
        load(owner, feed, EXPORTS / folder)
    with owner.begin() as connection:
        credentials = {name: add_vendor(connection, name, grants) for name, grants in GRANTS.items()}
        publish(connection, list_feed_ids(connection))
    return RosterClient(HttpClient(machines.proxy), credentials)  # type: ignore[arg-type]


def read_figures(machines: Machines, name: str) -> dict[str, float]:
    """The metrics of a web machine, which nginx does not pass on."""
    connection = HTTPConnection(machines.find_address(name), 8000, timeout=60)
    token = machines.values["ROSTER_METRICS_TOKEN"]
    connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {token}"})
    lines = connection.getresponse().read().decode().splitlines()
    connection.close()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


def count_reads(machines: Machines, server: str) -> list[float]:
    """How many pages and records each web machine has read from a server."""
    name = f'roster_reads_total{{server="{server}"}}'
    return [read_figures(machines, web).get(name, 0) for web in ("web1", "web2")]


def ask(client: RosterClient, query: str = "", **options: Any) -> Answer:
    """A page of users."""
    return client.call("v1p2", "/users", query, **options)


def wait_until_the_standby_answers(machines: Machines, client: RosterClient) -> None:
    """Asks until both web machines have read a page from the standby."""
    before = count_reads(machines, "standby")

    def is_read() -> bool:
        assert ask(client).status == 200
        return all(now > then for now, then in zip(count_reads(machines, "standby"), before, strict=True))

    wait_for(is_read)


def test_both_machines_read_from_the_standby_through_the_pooler(machines: Machines, client: RosterClient) -> None:
    wait_until_the_standby_answers(machines, client)
    for web in ("web1", "web2"):
        assert read_figures(machines, web)["roster_standby_up"] == 1


def test_a_pull_changes_machines_while_a_sync_commits(
    machines: Machines, client: RosterClient, owner: sa.Engine, tmp_path: Path
) -> None:
    whole = ask(client, "limit=100").ids
    requests = [read_figures(machines, web) for web in ("web1", "web2")]
    pages = [ask(client, "limit=2")]
    for offset in range(2, len(whole), 2):
        if offset == 6:
            export = tmp_path / "export"
            shutil.copytree(EXPORTS / FEEDS["springfield"], export)
            column("users", "phone", "555-0199")(export)
            load(owner, "springfield", export)
        pages.append(ask(client, f"limit=2&offset={offset}"))
    assert [id_ for page in pages for id_ in page.ids] == whole
    assert len({page.headers["X-Roster-Revision"] for page in pages}) == 1
    name = f'roster_requests_total{{method="GET",path="{USERS}",status="200"}}'
    for web, before in zip(("web1", "web2"), requests, strict=True):
        assert read_figures(machines, web)[name] > before.get(name, 0)


def test_a_vendor_gets_as_many_requests_as_its_burst_over_both_machines(
    machines: Machines, client: RosterClient, owner: sa.Engine
) -> None:
    limited = RosteringAllowance(requests_per_second=1, burst=60, at_once=100)
    with owner.begin() as connection:
        vendors.change_allowance(connection, TESTER, "north@vendors.example", Allowance(None, None, None), limited)
    bearer = {"Authorization": f"Bearer {client.token('v1p2', vendor='north')}"}
    targets = [machines.find_address(web) for web in ("web1", "web2")] * 50

    def ask_directly(address: str) -> int:
        connection = HTTPConnection(address, 8000, timeout=60)
        connection.request("GET", f"{USERS}?limit=2", headers=bearer)
        status = connection.getresponse().status
        connection.close()
        return status

    began = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        statuses = Counter(pool.map(ask_directly, targets))
    assert time.monotonic() - began < 60
    assert statuses == {200: 60, 429: 40}


def test_a_narrowed_right_ends_on_both_machines_while_the_standby_does_not_replay(
    machines: Machines, client: RosterClient, owner: sa.Engine
) -> None:
    assert {ask(client, vendor="south").status for _ in range(4)} == {200}
    machines.ask_standby("SELECT pg_wal_replay_pause()::text")
    try:
        with owner.begin() as connection:
            vendor_rights.revoke(connection, TESTER, "south@vendors.example", "shv-district")
        assert {ask(client, vendor="south").status for _ in range(4)} == {401}
    finally:
        machines.ask_standby("SELECT pg_wal_replay_resume()::text")


def test_a_machine_that_is_away_is_not_missed(machines: Machines, client: RosterClient) -> None:
    machines.stop("web1")
    try:
        assert {ask(client).status for _ in range(6)} == {200}
    finally:
        machines.start_web("web1")
    wait_until_the_standby_answers(machines, client)


def test_a_standby_that_is_away_is_not_missed(machines: Machines, client: RosterClient) -> None:
    machines.stop("standby")
    try:
        assert {ask(client).status for _ in range(6)} == {200}
    finally:
        machines.start_standby()
    wait_until_the_standby_answers(machines, client)
