"""Large bodies: the server takes one if the application says so, before it reads it."""

from __future__ import annotations

import pytest

from roster_service.app import MAX_BODY_BYTES

from .conftest import Worker


@pytest.mark.parametrize(
    ("path", "cookies", "is_taken"),
    [("/upload", "key=1", True), ("/upload", "key=2", False), ("/upload", "", False), ("/other", "key=1", False)],
)
def test_a_large_body_is_taken_for_an_upload_alone(worker: Worker, path: str, cookies: str, is_taken: bool) -> None:
    body = b"x" * (MAX_BODY_BYTES * 4)
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nCookie: {cookies}\r\nContent-Length: {len(body)}\r\n\r\n"
    connection = worker.connect(head.encode() + body)
    # The server reads a part of the body in each turn.
    worker.work(100)
    assert worker.receive(connection).endswith(body) is is_taken
