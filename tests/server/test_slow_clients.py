"""Slow clients: each costs its connection, for a bounded time, and nobody else waits."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from waitress.buffers import TempfileBasedBuffer

from roster_service.server import http_server
from roster_service.server.http_channel import BYTES_PER_SECOND, SECONDS, ConnectionState

from .conftest import KERNEL_BYTES, LARGE, Worker

pytestmark = pytest.mark.shows("Load", "No worker waits for a slow client.")

HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n"
BODY = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n"
MINUTES = 300
# What a client has sent, what it sends in a second, and the seconds that it has.
SENDING: list[Any] = [
    pytest.param(b"", b"", SECONDS[ConnectionState.HEAD], id="silent"),
    pytest.param(b"GET / HT", b"", SECONDS[ConnectionState.HEAD], id="half-a-line"),
    pytest.param(HEAD, b"", SECONDS[ConnectionState.HEAD], id="half-a-head"),
    pytest.param(HEAD + b"X: ", b"x", SECONDS[ConnectionState.HEAD], id="a-head-by-the-byte"),
    pytest.param(HEAD + b"X: ", b"x" * 1000, SECONDS[ConnectionState.HEAD], id="a-head-by-the-kilobyte"),
    pytest.param(BODY, b"", SECONDS[ConnectionState.BODY], id="no-body"),
    pytest.param(BODY, b"x", SECONDS[ConnectionState.BODY], id="a-body-by-the-byte"),
    pytest.param(HEAD + b"\r\n", b"", SECONDS[ConnectionState.IDLE], id="idle"),
]


@pytest.mark.parametrize(("sent", "each", "seconds"), SENDING)
def test_a_request_that_does_not_arrive_is_closed(worker: Worker, sent: bytes, each: bytes, seconds: int) -> None:
    connection = worker.connect(sent)
    assert (
        seconds <= worker.count_until_closed(connection, lambda: worker.send(connection, each), MINUTES) < seconds + 3
    )


def test_a_body_that_arrives_at_the_least_rate_is_taken(worker: Worker) -> None:
    connection = worker.connect(BODY)
    for _ in range(60_000 // BYTES_PER_SECOND):
        worker.send(connection, b"x" * BYTES_PER_SECOND)
        worker.server.count_second()
        worker.server.count_second()
    worker.send(connection, b"x" * (60_000 % BYTES_PER_SECOND))
    assert worker.receive(connection).startswith(b"HTTP/1.1 200 OK\r\n")


# The bytes that a reader takes in a second, and whether it is let go on.
READING = {"nothing": (0, False), "a byte": (1, False), "a kilobyte": (1024, False), "enough": (20_000, True)}


@pytest.mark.parametrize(("each", "is_enough"), READING.values(), ids=READING)
def test_a_reader_has_to_go_on_reading(worker: Worker, each: int, is_enough: bool) -> None:
    connection = worker.connect(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n", KERNEL_BYTES)
    seconds = worker.count_until_closed(connection, lambda: bool(worker.receive(connection, each)) or None, 40)
    assert (seconds == 40) is is_enough


def test_others_are_answered_beside_slow_clients(worker: Worker) -> None:
    slow = [worker.connect(HEAD) for _ in range(40)]
    slow += [worker.connect(BODY) for _ in range(40)]
    slow += [worker.connect(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n", KERNEL_BYTES) for _ in range(2)]
    connection = worker.connect()
    assert worker.ask(connection, "/a").endswith(b"/a ")
    assert all(worker.is_open(one) for one in slow)


def test_a_worker_that_was_busy_takes_no_time_from_a_client(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = worker.connect(HEAD)
    begin = http_server.time.monotonic()
    monkeypatch.setattr(http_server.time, "monotonic", lambda: begin + 60)
    worker.work()
    worker.send(connection, b"\r\n")
    assert worker.receive(connection).startswith(b"HTTP/1.1 200 OK\r\n")


def test_more_than_the_bound_of_responses_waits_in_files(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "MEMORY_BYTES", LARGE + LARGE // 2)
    readers = [worker.connect(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n") for _ in range(3)]
    kept = [buffer for channel in worker.server.channels.values() for buffer in channel.outbufs if len(buffer)]
    assert [isinstance(buffer.buf, TempfileBasedBuffer) for buffer in kept] == [False, True, True]
    for reader in readers:
        head, body = worker.receive(reader, 2 * LARGE).split(b"\r\n\r\n", 1)
        assert (head.splitlines()[0], body) == (b"HTTP/1.1 200 OK", bytes(LARGE))


def test_requests_that_come_at_once_are_answered_one_after_the_other_is_read(worker: Worker) -> None:
    connection = worker.connect(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n" * 20)
    [channel] = worker.server.channels.values()
    assert channel.total_outbufs_len < 2 * LARGE
    worker.receive(connection, LARGE + 200)
    worker.work()
    assert 0 < channel.total_outbufs_len < 2 * LARGE


def test_a_connection_beyond_the_bound_waits(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "CONNECTIONS", 3)
    slow = [worker.connect(HEAD) for _ in range(3)]
    waiting = worker.connect(HEAD + b"\r\n")
    worker.work()
    assert worker.receive(waiting) == b""
    slow[0].close()
    worker.work()
    assert worker.receive(waiting).startswith(b"HTTP/1.1 200 OK\r\n")


def test_urgent_data_ends_a_connection(worker: Worker) -> None:
    connection = worker.connect(HEAD)
    connection.send(b"x", socket.MSG_OOB)
    worker.work()
    assert not worker.is_open(connection)
