"""Large bodies: the server takes one if the application says so, before it reads it, and one at a time."""

from __future__ import annotations

import pytest

from roster_service.schemas.vendor_bodies import MAX_BODY_BYTES
from roster_service.server import http_channel

from .conftest import LARGE, Worker

pytestmark = pytest.mark.shows(
    "Console",
    "Session, role and token of the form are asked before the body of an upload is read; a worker takes one at a time.",
)

BODY = b"x" * (MAX_BODY_BYTES * 4)


def make_head(path: str, length: int) -> bytes:
    """The head of a request with a body."""
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode()


@pytest.mark.parametrize(
    ("path", "length", "is_taken"),
    [("/upload", len(BODY), True), ("/upload", LARGE + 1, False), ("/other", len(BODY), False)],
)
def test_a_large_body_is_taken_where_the_application_says_so(
    worker: Worker, path: str, length: int, is_taken: bool
) -> None:
    connection = worker.connect(make_head(path, length) + BODY)
    # The server reads a part of the body in each turn.
    worker.work(100)
    assert worker.receive(connection).endswith(BODY) is is_taken


def test_a_worker_takes_one_large_body_at_a_time(worker: Worker) -> None:
    first = worker.connect(make_head("/upload", len(BODY)) + BODY[:-1])
    second = worker.connect(make_head("/upload", len(BODY)))
    assert b"/upload" in worker.receive(second), "answered without its body"
    for sent in (BODY[-1:], make_head("/upload", len(BODY)) + BODY):
        worker.send(first, sent)
        worker.work(100)
        assert worker.receive(first).endswith(BODY)


def test_a_body_has_an_end_however_fast_it_comes(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_channel, "BODY_SECONDS", 20)
    connection = worker.connect(make_head("/upload", LARGE))
    seconds = worker.count_until_closed(connection, lambda: connection.send(b"x" * 16_384) and None, 100)
    assert seconds in (20, 21, 22)
