"""Responses, and the connections that they leave open or end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from roster_service.server.http_parser import NOT_HTTP

from .conftest import Worker

POST = "POST /echo HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.parametrize(("path", "status"), [("/a", b"200 OK"), ("/same", b"304 NOT MODIFIED")])
def test_a_connection_is_kept(worker: Worker, path: str, status: bytes) -> None:
    connection = worker.connect()
    for _ in range(3):
        assert worker.ask(connection, path).startswith(b"HTTP/1.1 " + status)


def test_a_response_has_the_headers_of_the_application(worker: Worker) -> None:
    lines = worker.ask(worker.connect(), "/same").decode().splitlines()
    assert [line.split(":")[0] for line in lines if line] == ["HTTP/1.1 304 NOT MODIFIED", "ETag", "Date"]


ENDS: list[Any] = [
    pytest.param("GET /a HTTP/1.0\r\n\r\n", id="1.0"),
    pytest.param("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", id="1.0-that-asks-for-more"),
    pytest.param("GET /same HTTP/1.0\r\n\r\n", id="1.0-without-a-body"),
    pytest.param("GET /a HTTP/1.1\r\nConnection: Close\r\n\r\n", id="asked-for"),
]


@pytest.mark.parametrize("head", ENDS)
def test_a_connection_ends_with_its_response(worker: Worker, head: str) -> None:
    connection = worker.connect(head.encode())
    assert b"\r\nConnection: close\r\n" in worker.receive(connection)
    assert not worker.is_open(connection)


def test_connections_of_a_worker_that_ends_end_with_their_next_response(worker: Worker) -> None:
    connection, idle = worker.connect(), worker.connect()
    worker.ask(idle, "/a")
    worker.send(connection, b"GET /a HTTP/1.1\r\n")
    worker.server.set_ending()
    worker.server.stop_accepting()
    worker.server.count_second()
    worker.server.count_second()
    assert not worker.server.is_quiet()
    worker.send(connection, b"\r\n")
    assert b"\r\nConnection: close\r\n" in worker.receive(connection)
    worker.server.count_second()
    assert worker.server.is_quiet()


# What is sent, and the body that the application gets.
BODIES: list[Any] = [
    pytest.param(POST + "Content-Length: 3\r\n\r\nabc", "abc", id="length"),
    pytest.param(POST + "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n", "abc", id="chunks"),
    pytest.param(POST + "Content-Length: 0\r\nExpect: 100-continue\r\n\r\n", "", id="nothing-expected"),
    pytest.param(POST + "Expect: 100-continue\r\n\r\n", "", id="no-body-expected"),
]


@pytest.mark.parametrize(("sent", "body"), BODIES)
def test_a_body_is_read(worker: Worker, sent: str, body: str) -> None:
    answer = worker.receive(worker.connect(sent.encode()))
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(f"/echo {body}".encode())


def test_a_client_that_expects_100_gets_it(worker: Worker) -> None:
    connection = worker.connect((POST + "Content-Length: 3\r\nExpect: 100-continue\r\n\r\n").encode())
    assert worker.receive(connection) == b"HTTP/1.1 100 Continue\r\n\r\n"
    worker.send(connection, b"abc")
    assert worker.receive(connection).endswith(b"/echo abc")


def test_a_body_that_is_too_large_is_not_asked_for(worker: Worker) -> None:
    connection = worker.connect((POST + "Content-Length: 100000\r\nExpect: 100-continue\r\n\r\n").encode())
    assert worker.receive(connection).startswith(b"HTTP/1.1 200 OK\r\n")
    assert not worker.is_open(connection)


def test_a_refusal_arrives_while_its_request_is_still_sent(worker: Worker) -> None:
    connection = worker.connect(b"nonsense\r\n\r\n")
    for _ in range(20):
        worker.send(connection, b"x" * 65_536)
    head, body = worker.receive(connection).split(b"\r\n\r\n", 1)
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert NOT_HTTP in json.loads(body)["statusInfoSet"]["imsx_description"]


def test_a_failure_of_the_application_is_answered_and_logged_without_its_words(
    worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    connection = worker.connect()
    head, body = worker.ask(connection, "/fails").split(b"\r\n\r\n", 1)
    assert head.startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
    assert json.loads(body)["statusInfoSet"]["imsx_codeMinor"] == "internal_server_error"
    [record] = caplog.records
    assert record.getMessage().startswith("a request from 127.0.0.1 was not answered: ValueError\n")
    assert "/fails" not in record.getMessage()


def test_a_response_that_breaks_ends_its_connection(worker: Worker) -> None:
    connection = worker.connect()
    assert worker.ask(connection, "/breaks").endswith(b"\r\n\r\nx")
    assert not worker.is_open(connection)
