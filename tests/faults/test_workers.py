"""Workers are replaced: no request is lost when an operator asks for it, and a worker that is stuck is ended."""

from __future__ import annotations

import signal
import threading
import time
from http.client import HTTPConnection
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.conditions import wait_for

from .services import Filled, Service, assert_served, serving

CLIENTS = 6
TIMEOUT_SECONDS = 2


def ask_on_and_on(port: int, ended: threading.Event, answered: list[int]) -> None:
    """Asks over one connection as long as the service keeps it, then over another. OSError or HTTPException where a
    request has no answer."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    while not ended.is_set():
        connection.request("GET", "/docs")
        response = connection.getresponse()
        response.read()
        answered.append(response.status)
    connection.close()


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_reload_loses_no_request(filled: Filled, tmp_path: Path) -> None:
    with serving(filled.url, filled.credentials, tmp_path) as service:
        before, ended, answered = service.workers, threading.Event(), [[] for _ in range(CLIENTS)]
        threads = [threading.Thread(target=ask_on_and_on, args=(service.port, ended, each)) for each in answered]
        for thread in threads:
            thread.start()
        service.process.send_signal(signal.SIGHUP)
        wait_for(lambda: not service.workers & before)
        so_far = [len(each) for each in answered]
        wait_for(lambda: all(len(each) > old for each, old in zip(answered, so_far, strict=True)))
        ended.set()
        for thread in threads:
            thread.join()
        assert {status for each in answered for status in each} == {200}
        assert len(service.workers) == len(before)


def test_a_worker_is_ended_if_a_request_takes_too_long(filled: Filled, tmp_path: Path) -> None:
    with serving(filled.url, filled.credentials, tmp_path, {"timeout": TIMEOUT_SECONDS, "workers": 1}) as service:
        assert_served(service)
        [stuck] = service.workers
        with filled.engine.begin() as connection:
            connection.execute(sa.text("LOCK TABLE users IN ACCESS EXCLUSIVE MODE"))
            asking = threading.Thread(target=service.ask, args=("v1p1",))
            asking.start()
            wait_for(lambda: "WORKER TIMEOUT" in service.log)
        asking.join()
        wait_for(lambda: bool(service.workers) and stuck not in service.workers)
        wait_for(lambda: is_served(service))


def test_a_worker_that_serves_is_not_taken_for_stuck(filled: Filled, tmp_path: Path) -> None:
    """Neither under load, nor without a request."""
    with serving(filled.url, filled.credentials, tmp_path, {"timeout": TIMEOUT_SECONDS, "workers": 1}) as service:
        before, end = service.workers, time.monotonic() + 2 * TIMEOUT_SECONDS
        while time.monotonic() < end:
            assert service.ask("v1p1", "/orgs").status == 401
        time.sleep(2 * TIMEOUT_SECONDS)
        assert service.workers == before
        assert "WORKER TIMEOUT" not in service.log


def is_served(service: Service) -> bool:
    """Whether a request is answered by a worker."""
    try:
        return service.ask("v1p1").status == 200
    except OSError:
        return False
