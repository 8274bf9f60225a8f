"""The log line of a request, and the id by which an operator finds it."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import StringIO
from typing import Any

import pytest
from werkzeug.test import Client, TestResponse

from roster_service.logs import LogFormat, LogLevel, configure_logging
from roster_service.web import request_log
from roster_service.web.request_log import add_request_facts
from tests.contract.client import ROOTS
from tests.contract.conftest import Served
from tests.offenders import in_one_test

PUPIL = "Wolkenstein"
USERS = f"{ROOTS['v1p1']}/users"


@dataclass
class Logged:
    """An application and the log that it writes."""

    served: Served
    stream: StringIO

    def ask(self, path: str, method: str = "GET", **headers: str) -> TestResponse:
        """The response to a request with the token of a vendor."""
        bearer = {"Authorization": f"Bearer {self.served.client.token('v1p1')}"}
        sent: Any = {"method": method, "headers": bearer | headers, "environ_base": {"REMOTE_ADDR": "192.0.2.7"}}
        with Client(self.served.app).open(path, **sent) as response:
            response.get_data()
            return response

    def read_lines(self) -> list[dict[str, Any]]:
        """The lines of the requests, without those for a token."""
        lines = [json.loads(line) for line in self.stream.getvalue().splitlines()]
        return [line for line in lines if "status" in line and line["path"] != "/oauth/token"]


@pytest.fixture
def write_log() -> Iterator[Callable[[LogLevel], StringIO]]:
    """Makes the service write its log, as JSON, to the stream that comes back."""
    root = logging.getLogger()
    before = root.handlers[:], root.level
    levels = {name: logging.getLogger(name).level for name in ("roster_service", "sync_scripts")}
    root.handlers.clear()

    def write(level: LogLevel) -> StringIO:
        stream = StringIO()
        configure_logging(LogFormat.JSON, level, add_request_facts, stream=stream)
        return stream

    yield write
    root.handlers[:], root.level = before
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


@pytest.fixture
def slow_app(served: Served, monkeypatch: pytest.MonkeyPatch) -> Served:
    """An application to which every request is slow."""
    monkeypatch.setattr(request_log, "SLOW_SECONDS", 0)
    return served


@pytest.fixture
def fast_app(served: Served, monkeypatch: pytest.MonkeyPatch) -> Served:
    """An application to which no request is slow."""
    monkeypatch.setattr(request_log, "SLOW_SECONDS", 3600)
    return served


def test_a_line_has_the_facts_of_a_request(fast_app: Served, write_log: Callable[..., StringIO]) -> None:
    logged = Logged(fast_app, write_log(LogLevel.INFO))
    response = logged.ask(f"{USERS}?limit=2&filter=familyName!='{PUPIL}'")
    (line,) = logged.read_lines()
    assert line.pop("time").endswith("Z")
    assert line.pop("milliseconds") > 0
    assert line.pop("client").startswith("client-")
    assert line.pop("vendor") > 0
    assert line == {
        "level": "info",
        "logger": "roster_service.web.request_log",
        "message": f"GET {USERS} 200",
        "request_id": response.headers["X-Request-Id"],
        "path": USERS,
        "address": "192.0.2.7",
        "method": "GET",
        "status": 200,
        "records": 2,
        "bytes": len(response.data),
    }


PATHS = [
    (f"{USERS}/spr-student-1", f"{USERS}/{{sourcedId}}", 200, "info"),
    (f"{USERS}/{PUPIL}", f"{USERS}/{{sourcedId}}", 404, "info"),
    (f"/{PUPIL}", "(unknown)", 404, "info"),
    (f"{ROOTS['v1p1']}/{PUPIL}", "(unknown)", 404, "info"),
    (f"{USERS}?filter={PUPIL}", USERS, 400, "info"),
]


@pytest.mark.shows(
    "Logs and transport",
    "A log line names the documented path alone; a slow request its parameters without values.",
)
@pytest.mark.parametrize(("sent", "path", "status", "level"), PATHS)
def test_a_line_names_the_documented_path_alone(
    fast_app: Served, write_log: Callable[..., StringIO], sent: str, path: str, status: int, level: str
) -> None:
    logged = Logged(fast_app, write_log(LogLevel.INFO))
    assert logged.ask(sent).status_code == status
    (line,) = logged.read_lines()
    assert (line["path"], line["status"], line["level"]) == (path, status, level)
    assert PUPIL not in logged.stream.getvalue()


QUERY = f"filter=familyName!='{PUPIL}' AND status='active'&sort=givenName&orderBy=desc&fields=sourcedId&offset=3"
SHAPE = "filter=familyName!='*' AND status='*' sort=givenName orderBy=desc fields=sourcedId limit=100 offset=3"


@pytest.mark.shows(
    "Logs and transport",
    "A log line names the documented path alone; a slow request its parameters without values.",
)
def test_a_slow_request_is_logged_with_its_parameters_and_no_value(
    slow_app: Served, write_log: Callable[..., StringIO]
) -> None:
    logged = Logged(slow_app, write_log(LogLevel.WARNING))
    assert logged.ask(f"{USERS}?{QUERY}").status_code == 200
    (line,) = logged.read_lines()
    assert (line["level"], line["shape"]) == ("warning", SHAPE)


@pytest.mark.parametrize(("level", "shape"), [(LogLevel.INFO, None), (LogLevel.DEBUG, SHAPE)])
def test_a_fast_request_is_logged_with_its_parameters_for_debugging_alone(
    fast_app: Served, write_log: Callable[..., StringIO], level: LogLevel, shape: str | None
) -> None:
    logged = Logged(fast_app, write_log(level))
    assert logged.ask(f"{USERS}?{QUERY}").status_code == 200
    (line,) = logged.read_lines()
    assert (line["level"], line.get("shape")) == ("info", shape)


def test_a_fault_and_its_request_share_an_id(
    served: Served, write_log: Callable[..., StringIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError(PUPIL)

    logged = Logged(served, write_log(LogLevel.ERROR))
    assert served.client.token("v1p1")
    monkeypatch.setattr("roster_service.serving.reader.Reader.read_page", fail)
    response = logged.ask(USERS)
    fault, line = (json.loads(text) for text in logged.stream.getvalue().splitlines())
    assert fault["message"].startswith("fault: RuntimeError")
    assert fault["request_id"] == line["request_id"] == response.headers["X-Request-Id"]
    assert line["status"] == 500
    assert PUPIL not in logged.stream.getvalue()


TAKEN_OVER = ["8f14e45f-ceea-4672-9f3b-2b7c8d1e0a55", "req_0001", "a" * 64, "1.2-3_4.5"]
REPLACED = ["", "short", "a" * 65, "with space", "-12345678", "ümlaute-und", "a\tb-345678", "{json:here}"]


@pytest.mark.parametrize("given", TAKEN_OVER)
def test_a_well_formed_request_id_is_taken_over(served: Served, given: str) -> None:
    assert Logged(served, StringIO()).ask(USERS, **{"X-Request-Id": given}).headers["X-Request-Id"] == given


@pytest.mark.parametrize("given", REPLACED)
def test_any_other_request_id_is_replaced(served: Served, given: str) -> None:
    made = Logged(served, StringIO()).ask(USERS, **{"X-Request-Id": given}).headers["X-Request-Id"]
    assert made != given
    assert len(made) == 16


ANYWHERE = ["/", "/docs", "/nowhere", USERS, "/v1/students", "/oauth/token", "/.well-known/jwks.json"]


@in_one_test
@pytest.mark.parametrize("method", ["GET", "POST", "BREW"])
@pytest.mark.parametrize("path", ANYWHERE)
def test_every_response_has_a_request_id(served: Served, path: str, method: str) -> None:
    logged = Logged(served, StringIO())
    ids = {logged.ask(path, method).headers["X-Request-Id"] for _ in range(2)}
    assert len(ids) == 2
