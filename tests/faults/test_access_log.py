"""The access log is complete: each answer with records has its row, whatever happens to its worker right after it."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from http.client import HTTPException
from pathlib import Path

import pytest
import sqlalchemy as sa

from roster_service.db.tables import audit
from tests.conditions import wait_for
from tests.conftest import Tally
from tests.extent import examples, long

from .services import Filled, Service, serving

CLIENTS = 4
KILLS = examples(2, 2, 50)
DISCLOSURES = examples(50, 50, 1_000)


def ask_on_and_on(service: Service, client: int, ended: threading.Event, answered: list[str]) -> None:
    """Asks for a page again and again; the ids of the requests that were answered."""
    number = 0
    while not ended.is_set():
        number += 1
        request_id = f"request-{client}-{number}"
        try:
            if service.ask("v1p1", more={"X-Request-Id": request_id}).status == 200:
                answered.append(request_id)
        except (OSError, HTTPException):
            # Its worker was killed, or none listens.
            time.sleep(0.01)


def read_ids(engine: sa.Engine) -> list[str]:
    """The ids of the requests in the table."""
    with engine.connect() as connection:
        return list(connection.scalars(sa.select(audit.c.request_id).where(audit.c.request_id.like("request-%"))))


def kill_workers(service: Service, seed: int) -> None:
    """Kills one worker at a time, at a random moment after all of them serve."""
    moments = random.Random(seed)
    for _ in range(KILLS):
        time.sleep(moments.uniform(0, 0.5))
        killed = moments.choice(sorted(service.workers))
        os.kill(killed, signal.SIGKILL)
        wait_for(lambda killed=killed: killed not in service.workers and bool(service.workers))  # type: ignore[misc]


@pytest.mark.shows(
    "Access log",
    "Each answer with records has exactly one row, also if its worker is killed right after it.",
)
@long
def test_no_row_is_lost_or_doubled_when_workers_are_killed(filled: Filled, tmp_path: Path, tally: Tally) -> None:
    with serving(filled.url, filled.credentials, tmp_path) as service:
        service.get_tokens()
        ended, answered = threading.Event(), [[] for _ in range(CLIENTS)]
        threads = [
            threading.Thread(target=ask_on_and_on, args=(service, client, ended, ids))
            for client, ids in enumerate(answered)
        ]
        for thread in threads:
            thread.start()
        kill_workers(service, random.randrange(2**32))
        wait_for(lambda: sum(map(len, answered)) >= DISCLOSURES)
        ended.set()
        for thread in threads:
            thread.join()
        shown = {request_id for ids in answered for request_id in ids}
        wait_for(lambda: shown <= set(read_ids(filled.engine)))
    rows = read_ids(filled.engine)
    assert len(rows) == len(set(rows))
    tally(f"{len(shown)} disclosures, {KILLS} workers killed, {len(shown - set(rows))} rows missing")
