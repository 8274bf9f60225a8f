"""What gunicorn logs of requests that end badly: kinds and places, at every log level, and nothing of the request."""

from __future__ import annotations

import json
import signal
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import pytest
import sqlalchemy as sa

from roster_service.server.http_parser import LONG_HEAD, LONG_LINE, LOWER_CASE, NOT_ENCODED, NOT_HTTP
from tests.contract.client import ROOTS
from tests.contract.conftest import Served
from tests.contract.test_server import Reply, Server, serving

pytestmark = pytest.mark.shows(
    "Logs and transport",
    "gunicorn logs an unreadable request with its address and reason, and keeps no access log.",
)

ROOT = ROOTS["v1p1"]
PUPIL = "Wolkenstein"
QUERY = f"filter=familyName='{PUPIL}'"
# Every line that gunicorn has, and its access log, which no operator has to ask for by the options of `roster run`.
LOUDEST = {"loglevel": "debug", "accesslog": "-"}


@dataclass
class Run:
    """A gunicorn, and what it writes. `begin`: where that of the running test begins."""

    server: Server
    pid: int
    path: Path
    begin: int = 0

    def wait_for(self, words: str) -> str:
        """What it has written in this test, as soon as these words stand there."""
        deadline = time.monotonic() + 30
        while words not in self.read() and time.monotonic() < deadline:
            time.sleep(0.05)
        return self.read()

    def read(self) -> str:
        """What it has written in this test until now."""
        return self.path.read_bytes()[self.begin :].decode()


@pytest.fixture(scope="module")
def started(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """The gunicorn of this module."""
    path = tmp_path_factory.mktemp("server") / "log"
    with path.open("wb") as output, serving(served, LOUDEST, output=output) as (server, process):
        yield Run(server, process.pid, path)


@pytest.fixture
def run(started: Run) -> Run:
    """The same, with a worker that answers; which, when it ends badly, another one replaces."""
    assert started.server.get(f"{ROOT}/users?{QUERY}").status == 200
    started.begin = started.path.stat().st_size
    return started


def assert_silent(log: str) -> None:
    """Neither the pupil nor a query string."""
    lines = [line for line in log.splitlines() if PUPIL.lower() in line.lower() or "filter=" in line]
    assert lines == []


# What is sent, and the reason of its refusal.
HEADS: list[Any] = [
    pytest.param(f"GET {ROOT}/users?{QUERY} AND x HTTP/1.1\r\n\r\n", NOT_ENCODED, id="space"),
    pytest.param(f"get {ROOT}/users?{QUERY} HTTP/1.1\r\n\r\n", LOWER_CASE, id="small-letters"),
    pytest.param(f"{PUPIL}\r\n\r\n", NOT_HTTP, id="line"),
    pytest.param(f"GET users?{QUERY} HTTP/1.1\r\n\r\n", NOT_HTTP, id="no-slash"),
    pytest.param(f"GET {ROOT}/users?{QUERY}\xe9 HTTP/1.1\r\n\r\n", NOT_ENCODED, id="letter"),
    pytest.param(f"{PUPIL} / HTTP/1.1\r\n\r\n", NOT_HTTP, id="method"),
    pytest.param(f"GET /?{QUERY}{'x' * 70_000} HTTP/1.1\r\n\r\n", LONG_LINE, id="long-line"),
    pytest.param(f"GET /?{QUERY} HTTP/1.1\r\n{PUPIL}\r\n\r\n", NOT_HTTP, id="no-colon"),
    pytest.param(f"GET /?{QUERY} HTTP/1.1\r\n{PUPIL} X: x\r\n\r\n", NOT_HTTP, id="header-name"),
    pytest.param(f"GET /?{QUERY} HTTP/1.1\r\nX: {PUPIL}\x00\r\n\r\n", NOT_HTTP, id="header-value"),
    pytest.param(f"GET /?{QUERY} HTTP/1.1\r\nX: {PUPIL}\r\n {PUPIL}\r\n\r\n", NOT_HTTP, id="folding"),
    pytest.param(f"GET /?{QUERY} HTTP/1.1\r\nX: {PUPIL * 18_000}\r\n\r\n", LONG_HEAD, id="long-header"),
    pytest.param(f"GET /?{QUERY} HTTP/1.1\r\nExpect: {PUPIL}\r\n\r\n", NOT_HTTP, id="expectation"),
    pytest.param(f"POST /?{QUERY} HTTP/1.1\r\nTransfer-Encoding: {PUPIL}\r\n\r\n", NOT_HTTP, id="coding"),
    pytest.param(
        f"POST /oauth/token?{QUERY} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
        f"Content-Type: application/x-www-form-urlencoded\r\n\r\n{PUPIL}\r\n",
        NOT_HTTP,
        id="chunk",
    ),
    pytest.param(f"GET /?{QUERY} HTTP/1.1\r\nX:{' ' * 100_000}{PUPIL}\r\n\r\n", NOT_HTTP, id="white-space"),
    pytest.param(f"GET /?{QUERY} HTTP/1.1\r\n" + f"X: {PUPIL}\r\n" * 101 + "\r\n", LONG_HEAD, id="many-headers"),
    pytest.param(f"GET http://[{PUPIL} HTTP/1.1\r\n\r\n", NOT_HTTP, id="host"),
    pytest.param(f"POST /?{QUERY} HTTP/1.1\r\nContent-Length: {'9' * 5000}\r\n\r\n", NOT_HTTP, id="length"),
]
# Heads without an end.
GONE = [f"GET {ROOT}/users?{QUERY}", f"GET {ROOT}/users?{QUERY} HTTP/1.1\r\nX: {PUPIL}"]


def send(run: Run, head: str) -> bytes:
    """What is answered to these bytes, until the connection is closed."""
    answer = b""
    with socket.create_connection(("127.0.0.1", run.server.port), timeout=30) as connection:
        connection.sendall(head.encode("latin-1"))
        connection.shutdown(socket.SHUT_WR)
        while part := connection.recv(65_536):
            answer += part
    return answer


@pytest.mark.parametrize(("head", "reason"), HEADS)
def test_a_request_that_cannot_be_read_is_one_line_of_the_log(run: Run, head: str, reason: str) -> None:
    answer, body = send(run, head).split(b"\r\n\r\n", 1)
    status, *headers = answer.splitlines()
    assert status == b"HTTP/1.1 400 Bad Request"
    assert reason in json.loads(body)["statusInfoSet"]["imsx_description"]
    log = run.wait_for(reason)
    [line] = map(json.loads, log.splitlines())
    assert line["message"] == f"a request from 127.0.0.1 cannot be read: {reason}"
    assert f"X-Request-Id: {line['request_id']}".encode() in headers
    assert_silent(log)


@pytest.mark.parametrize(("given", "is_taken"), [("of-the-proxy.1", True), ("short", False), ("no letters ", False)])
@pytest.mark.parametrize(
    ("line", "more"),
    [("GET /? HTTP/1.1", ": x"), ("GET /?a b HTTP/1.1", "X: y"), ("GET /? HTTP/1.1", "Transfer-Encoding: x")],
)
def test_a_request_that_cannot_be_read_keeps_its_well_formed_id(
    run: Run, line: str, more: str, given: str, is_taken: bool
) -> None:
    """Whether the line is at fault or a header."""
    answer = send(run, f"{line}\r\nx-request-id: {given}\r\n{more}\r\n\r\n")
    [found] = [it.partition(b": ")[2].decode() for it in answer.splitlines() if it.startswith(b"X-Request-Id")]
    assert (found == given) is is_taken
    assert found


@pytest.mark.parametrize("head", GONE)
def test_a_client_that_goes_away_is_not_logged(run: Run, head: str) -> None:
    assert send(run, head) == b""
    assert run.server.get("/docs").status == 200
    [line] = run.wait_for("/docs").splitlines()
    assert json.loads(line)["path"] == "/docs"


def test_a_request_whose_worker_is_ended_is_logged_by_its_place(served: Served, run: Run) -> None:
    """As gunicorn ends a worker that takes too long."""
    replies: list[Reply] = []
    # Whatever a worker knows, the records of a page are read.
    target = f"{ROOT}/users?filter=" + quote(f"familyName!='{PUPIL}'")
    asking = threading.Thread(target=lambda: replies.append(run.server.get(target)))
    waiting = sa.text("SELECT count(*) FROM pg_locks WHERE relation = 'users'::regclass AND NOT granted")
    with served.engine.connect() as connection:
        connection.execute(sa.text("LOCK TABLE users IN ACCESS EXCLUSIVE MODE"))
        asking.start()
        while asking.is_alive() and not connection.scalar(waiting):
            time.sleep(0.05)
        (worker,) = psutil.Process(run.pid).children()
        worker.send_signal(signal.SIGABRT)
    # The lock is gone, and the worker comes back from the database.
    asking.join()
    assert [reply.status for reply in replies] == [500]
    assert replies[0].json["statusInfoSet"]["imsx_codeMinor"] == "internal_server_error"
    log = run.wait_for("SystemExit")
    assert "SystemExit" in log
    assert_silent(log)


def test_an_answered_request_is_not_logged(run: Run) -> None:
    """gunicorn's access log has query strings; the access log of the service, which has none, is in the database."""
    assert run.server.get(f"{ROOT}/users?{QUERY}").status == 200
    assert run.server.get(f"{ROOT}/users?{QUERY}%20OR").status == 400
    # A worker begins the next request when it has logged the one before.
    assert run.server.get("/docs").status == 200
    log = run.wait_for("/docs")
    assert "/docs" in log
    assert_silent(log)
