"""Callers take turns, however many connections one of them has."""

from __future__ import annotations

import contextlib
import select
import socket
from typing import Any

import pytest

from roster_service.server import http_turns
from roster_service.server.http_turns import REFUSAL_SECONDS

from .conftest import Worker

KEY = "Authorization: Bearer a"
OTHER = "Authorization: Bearer b"


def send(connection: socket.socket, headers: str, requests: int = 1, path: str = "/a") -> None:
    """Sends requests, and gives the server no turn."""
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n\r\n".encode() * requests)


def connect(worker: Worker, *headers: str) -> list[socket.socket]:
    """Connections, each with a request that the server has not read; with "", a connection without a request."""
    connections = [worker.connect() for _ in headers]
    for connection, lines in zip(connections, headers, strict=True):
        if lines:
            send(connection, lines)
    return connections


def list_answered(worker: Worker, connections: list[socket.socket], count: int) -> list[int]:
    """The numbers of the connections of the next responses, in the order of the responses."""
    numbers: list[int] = []
    for _ in range(5 * count):
        if len(numbers) < count:
            worker.work(1)
            readable = select.select(connections, [], [], 0)[0]
            numbers += [connections.index(connection) for connection in readable if connection.recv(65_536)]
    return numbers


# The headers of three requests, those of a fourth one, and the place of its response.
FOURTH: list[Any] = [
    pytest.param(KEY, OTHER, 1, id="another-token"),
    pytest.param(KEY, KEY, 3, id="the-same-token"),
    pytest.param("x-api-key: a", "x-api-key: b", 1, id="another-key"),
    pytest.param("x-api-key: a", "x-api-key: a", 3, id="the-same-key"),
    pytest.param(f"{KEY}\r\nx-api-key: a", f"{KEY}\r\nx-api-key: b", 3, id="the-same-token-with-another-key"),
    pytest.param("Authorization: a", "x-api-key: a", 1, id="a-key-like-the-token"),
    pytest.param(KEY, "Authorization:", 1, id="no-token"),
    pytest.param("Accept: a", "Accept: b", 3, id="the-same-address"),
    pytest.param(KEY, "nonsense", 1, id="a-request-that-cannot-be-read"),
]


@pytest.mark.parametrize(("three", "fourth", "place"), FOURTH)
def test_a_caller_waits_for_one_request_of_another_one(worker: Worker, three: str, fourth: str, place: int) -> None:
    connections = connect(worker, three, three, three, fourth)
    order = [0, 1, 2]
    order.insert(place, 3)
    assert list_answered(worker, connections, 4) == order


def test_a_caller_that_comes_later_is_next(worker: Worker) -> None:
    connections = connect(worker, KEY, KEY, KEY, "")
    assert list_answered(worker, connections, 1) == [0]
    send(connections[3], OTHER)
    assert list_answered(worker, connections, 3) == [3, 1, 2]


def test_a_caller_that_asks_again_at_once_does_not_keep_others_waiting(worker: Worker) -> None:
    connections = connect(worker, KEY, KEY, KEY, OTHER)
    order = []
    for _ in range(3):
        order += list_answered(worker, connections, 2)
        send(connections[3], OTHER)
    assert order == [0, 3, 1, 3, 2, 3]


def test_requests_that_come_at_once_over_a_connection_take_turns(worker: Worker) -> None:
    many, one = connect(worker, "", "")
    send(many, KEY, 3)
    send(one, OTHER)
    assert list_answered(worker, [many, one], 4) == [0, 1, 0, 0]


def test_a_caller_does_not_wait_behind_the_new_connections_of_another_one(worker: Worker) -> None:
    """A turn accepts two connections and answers one request."""
    address = connect(worker, "")[0].getpeername()
    connections = [socket.create_connection(address) for _ in range(9)]
    for connection in connections:
        send(connection, OTHER if connection is connections[-1] else KEY)
    place = list_answered(worker, connections, 9).index(8)
    for connection in connections:
        connection.close()
    assert 0 < place < 6


def test_a_caller_that_got_429_waits_while_others_are_answered(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    now = http_turns.time.monotonic()
    monkeypatch.setattr(http_turns.time, "monotonic", lambda: now)
    connections = connect(worker, "", "", "")
    for connection in connections[:2]:
        send(connection, KEY, path="/often")
    assert list_answered(worker, connections, 1) == [0]
    for _ in range(2):
        send(connections[2], OTHER)
        assert list_answered(worker, connections, 1) == [2]
    assert list_answered(worker, connections, 1) == []
    now += REFUSAL_SECONDS
    assert list_answered(worker, connections, 1) == [1]


def test_a_429_of_an_address_does_not_keep_others_at_that_address_waiting(worker: Worker) -> None:
    """A proxy has one address for all vendors."""
    connections = connect(worker, "", "", "")
    for connection in connections:
        send(connection, "Accept: a", path="/often")
    assert list_answered(worker, connections, 3) == [0, 1, 2]


def test_a_client_that_waits_for_each_response_does_not_wait_after_a_429(worker: Worker) -> None:
    """Its queue is gone with its request."""
    [connection] = connect(worker, "")
    for _ in range(3):
        send(connection, KEY, path="/often")
        worker.work(2)
        assert b" 429 " in worker.receive(connection)


# Whether there are other workers, the connections of each of two callers, and those that the worker ends.
MOVES: list[Any] = [
    pytest.param(True, 1, 1, {0}, id="one-connection-each"),
    pytest.param(True, 3, 1, {3}, id="of-the-caller-with-fewer"),
    pytest.param(True, 2, 0, set(), id="a-caller-alone"),
    pytest.param(False, 1, 1, set(), id="a-worker-alone"),
]


@pytest.mark.shows("Load", "A vendor that waits for another one is led to another worker.")
@pytest.mark.parametrize(("has_siblings", "own", "others", "ended"), MOVES)
def test_a_caller_that_waits_for_another_one_is_led_to_another_worker(
    has_siblings: bool, own: int, others: int, ended: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_turns.time, "monotonic", lambda: 1000.0)
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        worker = Worker(listener, stack, has_siblings=has_siblings)
        stack.callback(worker.server.close)
        headers = [KEY] * own + [OTHER] * others
        connections = connect(worker, *[""] * len(headers))
        found = set()
        for _ in range(2 * http_turns.CONTENDED_RESPONSES):
            for number in set(range(len(headers))) - found:
                send(connections[number], headers[number])
            worker.work(2 * len(headers))
            for number in set(range(len(headers))) - found:
                if b"Connection: close" in worker.receive(connections[number]):
                    found.add(number)
    assert found == ended
