"""`python -m tests.bench.disclosures`: what the row of a disclosure costs a page, in this process.

Rounds follow each other in turn: with rows that pass through the spool, with such rows without the hashes of people,
with rows that wait in memory, where the end of the worker would lose them, and without rows. A round ends when the
database has its rows, so its time has the moving of them. STUDENTS sets the size of the district (2,000), ROUNDS the
number of rounds of each kind (25), LIMITS the sizes of the pages (100).
"""

from __future__ import annotations

import itertools
import os
import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import sqlalchemy as sa
from flask.testing import FlaskClient

from roster_service.access_log.entries import Disclosure, PersonHasher
from roster_service.access_log.writer import AccessLog
from roster_service.app import create_app
from roster_service.db.engine import make_engine
from tests.bench.place import Place, open_place
from tests.bench.reader import ask

STUDENTS = int(os.environ.get("STUDENTS", "2000"))
ROUNDS = int(os.environ.get("ROUNDS", "25"))
LIMITS = tuple(map(int, os.environ.get("LIMITS", "100").split(",")))
# Records that the requests of a round bring.
RECORDS = 20_000
PATH = "/ims/oneroster/v1p1/{}&offset=500"
PAGES = {"users": "users?limit={}", "users with a filter": "users?limit={}&filter=status%3D'active'",
         "enrollments": "enrollments?limit={}"}  # fmt: skip


@dataclass(frozen=True)
class Round:
    """Milliseconds of a request: by the clock, with the moving of its row; of this process; and by the clock, of each
    request by itself."""

    clock: float
    processor: float
    single: list[float]


def measure(client: FlaskClient, token: str, path: str, access_log: AccessLog, requests: int) -> Round:
    """Measures a round."""
    clock, processor = time.perf_counter(), time.process_time()
    instants = [clock]
    for _ in range(requests):
        ask(client, token, path)
        instants.append(time.perf_counter())
    access_log.flush()
    return Round(
        (time.perf_counter() - clock) * 1000 / requests,
        (time.process_time() - processor) * 1000 / requests,
        [(end - start) * 1000 for start, end in itertools.pairwise(instants)],
    )


# What is printed of the rounds of a kind. The last one leaves out nearly all that other processes do to a request.
UNITS: Mapping[str, Callable[[list[Round]], float]] = {
    "clock": lambda rounds: statistics.median(one.clock for one in rounds),
    "processor": lambda rounds: statistics.median(one.processor for one in rounds),
    "fastest twentieth": lambda rounds: statistics.quantiles([it for one in rounds for it in one.single], n=20)[0],
}


def keep_in_memory(access_log: AccessLog, disclosure: Disclosure) -> None:
    """Records a disclosure for the next flush alone."""
    access_log._unsaved.append(disclosure.make_line())


# Each kind, with what takes the place of what.
KINDS: Mapping[str, Mapping[tuple[type, str], Callable[..., Any]]] = {
    "spool": {},
    "no people": {(PersonHasher, "hash_people"): lambda _hasher, _ids: b""},
    "memory": {(AccessLog, "record"): keep_in_memory},
    "no row": {
        (AccessLog, "record"): lambda _log, _disclosure: None,
        (PersonHasher, "hash_people"): lambda _hasher, _ids: b"",
    },
}


def compare(place: Place, name: str, path: str, limit: int) -> None:
    """Prints the times of each kind, and the bytes of a row."""
    app = create_app(place.settings, place.url)
    access_log: AccessLog = app.extensions["roster_access_log"]
    client = app.test_client()
    pair = (place.account.client_id, place.account.client_secret)
    form = {"grant_type": "client_credentials", "scope": "v1p1/roster.readonly"}
    token = client.post("/oauth/token", data=form, auth=pair).get_json()["access_token"]
    found: dict[str, list[Round]] = {kind: [] for kind in KINDS}
    for _ in range(ROUNDS + 1):
        for kind, replaced in KINDS.items():
            with ExitStack() as stack:
                for (owner, method), replacement in replaced.items():
                    stack.enter_context(mock.patch.object(owner, method, replacement))
                found[kind].append(measure(client, token, path, access_log, max(10, RECORDS // limit)))
    for unit, read in UNITS.items():
        # The first round of each made what is cached.
        shown = ", ".join(f"{kind} {read(rounds[1:]):.3f} ms" for kind, rounds in found.items())
        print(f"{limit} {name}, {unit}: {shown}", flush=True)
    engine = make_engine(place.url)
    with engine.connect() as connection:
        sizes = "SELECT max(octet_length(people)), max(pg_column_size(audit)) FROM audit"
        people, row = connection.execute(sa.text(sizes)).one()
        print(f"{limit} {name}: {people} bytes of people, {row} bytes of the row", flush=True)
    with engine.begin() as connection:
        connection.execute(sa.text("TRUNCATE audit"))
    engine.dispose()
    access_log.close()


if __name__ == "__main__":
    with TemporaryDirectory(prefix="roster-bench-") as made, open_place(STUDENTS, Path(made)) as opened:
        for size in LIMITS:
            for label, address in PAGES.items():
                compare(opened, label, PATH.format(address.format(size)), size)
