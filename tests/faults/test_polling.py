"""A consumer that polls over HTTP while syncs commit misses no change."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.app import create_app
from roster_service.db import tables
from roster_service.settings import Settings
from sync_scripts.engine.load import load
from tests.conftest import close_app
from tests.contract.client import Answer, RosterClient
from tests.contract.conftest import SECRET_KEY, add_vendor
from tests.sync.export_changes import cell_of, with_row, without_rows

from .conftest import ROUNDS

VENDOR = "poller"
LOAD_RUNS = 2 + 2 * ROUNDS
AHEAD = timedelta(days=1)
BEGINNING = "1970-01-01T00:00:00.000Z"
# Less than there are users, so that a commit may fall between two pages.
PAGE = "4"


@pytest.fixture
def make_client(engine: sa.Engine, load_runs: tuple[Path, Path]) -> Iterator[Callable[[], RosterClient]]:
    """Clients of one application, which serves the first night."""
    load(engine, "feed", load_runs[0])
    with engine.begin() as connection:
        credentials = {VENDOR: add_vendor(connection, VENDOR, [("spr-district", ())])}
    app = create_app(Settings(secret_key=SECRET_KEY), engine.url.render_as_string(hide_password=False))
    first = RosterClient(app, credentials)
    yield lambda: RosterClient(app, credentials, first.documents)
    close_app(app)


def pull(client: RosterClient, since: str, into: dict[str, Any]) -> str:
    """Reads what is newer than `since` into a mirror, page by page; returns what to ask for the next time."""

    def read(answer: Answer) -> Answer:
        into.update({record["sourcedId"]: record for record in answer.records})
        return answer

    query = {"filter": f"dateLastModified>'{since}'", "limit": PAGE}
    first = answer = read(client.call("v1p2", "/users", query, vendor=VENDOR))
    while "next" in answer.links:
        answer = read(client.follow("v1p2", answer.links["next"], vendor=VENDOR))
    return str(first.headers["X-Roster-As-Of"])


def change(folder: Path, number: int) -> None:
    """The next night: somebody gets another number; every other night somebody comes or goes."""
    cell_of("users", f"spr-student-{1 + number % 5}", "sms", str(number))(folder)
    person = {"enabledUser": "true", "role": "student", "orgSourcedIds": "spr-high", "username": "n", "givenName": "N"}
    if number % 4 == 1:
        with_row("users", sourcedId="a-new-one", familyName="N", **person)(folder)
    if number % 4 == 3:
        without_rows("users", "a-new-one")(folder)


def test_a_poller_misses_no_change(
    engine: sa.Engine, load_runs: tuple[Path, Path], make_client: Callable[[], RosterClient]
) -> None:
    mirror: dict[str, Any] = {}
    done = threading.Event()
    failures: list[BaseException] = []

    def poll(client: RosterClient) -> None:
        since, last = BEGINNING, False
        while not last:
            last = done.is_set()
            since = pull(client, since, mirror)

    def guarded() -> None:
        try:
            poll(make_client())
        except BaseException as error:  # noqa: BLE001  (raised again where the test stands)
            failures.append(error)

    poller = threading.Thread(target=guarded)
    poller.start()
    try:
        for number in range(LOAD_RUNS):
            if number == 3:
                # As if the clock had been a day ahead until now.
                with engine.begin() as connection:
                    ahead = tables.roster_state.c.as_of + AHEAD
                    connection.execute(sa.update(tables.roster_state).values(as_of=ahead))
            change(load_runs[0], number)
            assert load(engine, "feed", load_runs[0]).outcome == "done"
    finally:
        done.set()
        poller.join()
    assert failures == []
    everything: dict[str, Any] = {}
    pull(make_client(), BEGINNING, everything)
    assert len(everything) > int(PAGE)
    assert mirror == everything
