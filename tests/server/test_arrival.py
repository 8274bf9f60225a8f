"""The time of a request for its database counts from its arrival, not from its turn."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pytest

from roster_service.db.deadline import find_time_left
from roster_service.server import http_parser
from roster_service.web.time_limit import TimeLimit

from .conftest import Worker

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


def answer_time_left(_environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answers with the seconds that it has."""
    text = f"left {find_time_left():.0f}".encode()
    start_response("200 OK", [("Content-Length", str(len(text)))])
    return [text]


@pytest.mark.parametrize(("waited", "left"), [(0, 30), (20, 10), (40, -10)])
def test_the_wait_for_a_turn_counts(monkeypatch: pytest.MonkeyPatch, waited: int, left: int) -> None:
    class Clock:
        """Of the moment of the arrival."""

        @staticmethod
        def monotonic() -> float:
            return real() - waited

    real = http_parser.time.monotonic
    monkeypatch.setattr(http_parser, "time", Clock)
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        worker = Worker(listener, stack, TimeLimit(answer_time_left, 30))
        stack.callback(worker.server.close)
        assert worker.ask(worker.connect(), "/").endswith(f"left {left}".encode())
