"""`python -m tests.bench.disclosures`: what the row of a disclosure costs a page of 100, in this process.

Rounds follow each other in turn: with rows that pass through the spool, with rows that wait in memory, where the end of
the worker would lose them, and without rows. A round ends when the database has its rows, so its time has the moving
of them. STUDENTS sets the size of the district (2,000), ROUNDS the number of rounds of each kind (9).
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

from flask.testing import FlaskClient

from roster_service.access.access_log.entries import Disclosure
from roster_service.access.access_log.writer import AccessLog
from roster_service.app import create_app
from tests.bench.place import Place, open_place
from tests.bench.reader import ask

STUDENTS = int(os.environ.get("STUDENTS", "2000"))
ROUNDS = int(os.environ.get("ROUNDS", "9"))
REQUESTS = 1_000
PATH = "/ims/oneroster/v1p1/users?limit=100&offset=500"
PAGES = {"a page": PATH, "with a filter": f"{PATH}&filter=status%3D'active'"}


def measure(client: FlaskClient, token: str, path: str, access_log: AccessLog) -> tuple[float, float]:
    """Milliseconds of a request: by the clock, and of this process."""
    clock, processor = time.perf_counter(), time.process_time()
    for _ in range(REQUESTS):
        ask(client, token, path)
    access_log.flush()
    return (
        (time.perf_counter() - clock) * 1000 / REQUESTS,
        (time.process_time() - processor) * 1000 / REQUESTS,
    )


def keep_in_memory(access_log: AccessLog, disclosure: Disclosure) -> None:
    """Records a disclosure for the next flush alone."""
    access_log._unsaved.append(disclosure.make_line())


KINDS: Mapping[str, Callable[[AccessLog, Disclosure], None]] = {
    "spool": AccessLog.record,
    "memory": keep_in_memory,
    "no row": lambda _log, _disclosure: None,
}


def compare(place: Place, name: str, path: str) -> None:
    """Prints the medians of each kind."""
    app = create_app(place.settings, place.url)
    access_log: AccessLog = app.extensions["roster_access_log"]
    client = app.test_client()
    pair = (place.account.client_id, place.account.client_secret)
    form = {"grant_type": "client_credentials", "scope": "v1p1/roster.readonly"}
    token = client.post("/oauth/token", data=form, auth=pair).get_json()["access_token"]
    found: dict[str, list[tuple[float, float]]] = {kind: [] for kind in KINDS}
    for _ in range(ROUNDS + 1):
        for kind, record in KINDS.items():
            with mock.patch.object(AccessLog, "record", record):
                found[kind].append(measure(client, token, path, access_log))
    for column, unit in enumerate(("clock", "processor")):
        # The first round of each made what is cached.
        times = {kind: statistics.median(row[column] for row in rows[1:]) for kind, rows in found.items()}
        print(f"{name}, {unit}: " + ", ".join(f"{kind} {taken:.3f} ms" for kind, taken in times.items()), flush=True)
    access_log.close()


if __name__ == "__main__":
    with TemporaryDirectory(prefix="roster-bench-") as made, open_place(STUDENTS, Path(made)) as opened:
        for label, address in PAGES.items():
            compare(opened, label, address)
