"""The time of a request for its database counts from its arrival, not from its turn."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pytest

from roster_service.db.deadline import find_time_left
from roster_service.web.time_limit import TimeLimit

from .conftest import Worker

pytestmark = pytest.mark.shows(
    "Load",
    "Behind a locked or frozen database, a request is answered 503 in a bounded time from its arrival.",
)

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


def answer_time_left(_environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answers with the seconds that it has."""
    text = f"left {find_time_left():.2f}".encode()
    start_response("200 OK", [("Content-Length", str(len(text)))])
    return [text]


@pytest.mark.parametrize("is_accepted", [False, True])
def test_the_wait_for_a_turn_counts_from_the_arrival_at_the_kernel(is_accepted: bool) -> None:
    """A worker accepts and reads nothing while it answers another request."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        worker = Worker(listener, stack, TimeLimit(answer_time_left, 30))
        stack.callback(worker.server.close)
        connection = stack.enter_context(socket.create_connection(listener.getsockname()))
        if is_accepted:
            worker.work()
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(1.2)
        worker.work()
        connection.setblocking(False)
        assert float(worker.receive(connection).rpartition(b" ")[2]) <= 30 - 1.1
