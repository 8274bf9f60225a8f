"""Behind gunicorn, as operators run it: what a real server hands over differs from what a test client does."""

from __future__ import annotations

import dataclasses
import json
import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import pytest

from roster_service.server.gunicorn_app import make_options, start, stop
from roster_service.settings import Settings
from tests.offenders import in_one_test

from .client import ROOTS
from .conftest import SECRET_KEY, Served
from .paths import ENDPOINTS, each_path

ROOT = ROOTS["v1p1"]
PROJECT = Path(__file__).parent.parent.parent


@dataclass(frozen=True)
class Reply:
    """What came back over the wire."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, parsed; it must say that it is JSON."""
        assert self.headers["Content-Type"] == "application/json", (self.status, self.body)
        return json.loads(self.body)

    @property
    def ids(self) -> list[str]:
        """The ids of its records."""
        ((_, found),) = self.json.items()
        return [record["sourcedId"] for record in (found if isinstance(found, list) else [found])]


@dataclass(frozen=True)
class Server:
    """A gunicorn of these tests' own."""

    port: int
    token: str

    def get(self, target: str, method: str = "GET", headers: Mapping[str, str] | None = None) -> Reply:
        """A request with exactly this target in its first line."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.putrequest(method, target, skip_accept_encoding=True)
            for name, text in {"Authorization": f"Bearer {self.token}", **(headers or {})}.items():
                connection.putheader(name, text)
            connection.endheaders()
            response = connection.getresponse()
            return Reply(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()


@contextmanager
def serving(
    served: Served,
    options: Mapping[str, object] | None = None,
    output: int | IO[bytes] | None = None,
    application: str = "wsgi:app",
    **settings: str,
) -> Iterator[tuple[Server, subprocess.Popen[bytes]]]:
    """gunicorn with one worker and the options of `roster run`, on the database of other tests and a port of its own.

    `options`: other ones; `application`: another one; `settings`: the variables behind `ROSTER_`.
    """
    with tempfile.TemporaryDirectory() as home, socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        bound = {"bind": f"fd://{listening.fileno()}"}
        given = {"DATABASE_URL": served.url, "HOME": home, "SECRET_KEY": SECRET_KEY, **settings}
        own = {f"ROSTER_{name.upper()}": text for name, text in given.items()}
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ROSTER_")}
        process = start(
            application,
            make_options(Settings(workers=1)) | bound | dict(options or {}),
            cwd=PROJECT,
            env=kept | own,
            pass_fds=[listening.fileno()],
            stdout=output,
            stderr=output,
        )
        try:
            yield Server(listening.getsockname()[1], served.client.token("v1p1")), process
        finally:
            stop(process)


@pytest.fixture(scope="module")
def server(served: Served) -> Iterator[Server]:
    """One that says nothing of the broken requests of these tests."""
    with serving(served, {"loglevel": "critical"}) as (server, _):
        yield server


def test_collections_and_records_are_served(server: Server) -> None:
    assert server.get(f"{ROOT}/schools").ids == ["shv-north", "shv-south", "spr-elementary", "spr-high"]
    assert server.get(f"{ROOT}/orgs/spr-high").ids == ["spr-high"]


@pytest.mark.parametrize(
    ("path", "ids"),
    [
        pytest.param("/classes/spr-class%2Fstats@1", "spr-class/stats@1", id="slash"),
        pytest.param("/classes/spr-class%2fstats%401", "spr-class/stats@1", id="lower-case"),
        pytest.param("/classes/spr-class%2Fstats@1/students", "spr-student-3 spr-student-5", id="slash-in-the-middle"),
        pytest.param("/users/spr-proctor@1/classes", "spr-class-chem-1", id="at-sign"),
    ],
)
def test_ids_keep_their_own_slashes(server: Server, path: str, ids: str) -> None:
    assert server.get(f"{ROOT}{path}").ids == ids.split()


@pytest.mark.parametrize("segment", ["%00", "%FF", "%2F", "%25", "%ZZ", "a%0Ab", "..%2F..", "x" * 3000])
def test_strange_ids_are_unknown(server: Server, segment: str) -> None:
    reply = server.get(f"{ROOT}/users/{segment}")
    assert (reply.status, reply.json["statusInfoSet"]["imsx_codeMinor"]) == (404, "unknownobject")
    assert server.get(f"{ROOT}/schools/{segment}/students").json == {"users": []}


def test_an_address_with_its_host_is_read(server: Server) -> None:
    """Proxies may send the absolute form (RFC 9112, section 3.2.2)."""
    target = f"http://roster.example{ROOT}/classes/spr-class%2Fstats@1?fields=sourcedId"
    assert server.get(target).json == {"class": {"sourcedId": "spr-class/stats@1"}}


# A worker answers in one way what it asked before, and in another what it did not.
TIMES = 3
# Of the answer itself, whatever was asked.
OWN_HEADERS = {"Date", "X-Request-Id", "RateLimit-Remaining", "RateLimit-Reset"}


@in_one_test
@each_path(ENDPOINTS)
def test_a_trailing_slash_changes_nothing(server: Server, served: Served, version: str, endpoint: Any) -> None:
    """No redirect, the same records, and the same links and tag, none of which has the slash."""
    own = dataclasses.replace(server, token=served.client.token(version))
    query = "?fields=sourcedId" if endpoint.single else "?limit=1&fields=sourcedId,nothing"
    plain, slashed = (
        [own.get(f"{ROOTS[version]}{endpoint.address}{end}{query}") for _ in range(TIMES)] for end in ("", "/")
    )
    assert [reply.status for reply in slashed] == [200] * TIMES
    for one, other in zip(plain, slashed, strict=True):
        assert one.body == other.body
        assert [one.headers | dict.fromkeys(OWN_HEADERS, "")] == [other.headers | dict.fromkeys(OWN_HEADERS, "")]
        assert f"{endpoint.address}/?" not in other.headers.get("Link", "")
    known = {"If-None-Match": slashed[0].headers["ETag"]}
    assert own.get(f"{ROOTS[version]}{endpoint.address}/{query}", headers=known).status == 304


@pytest.mark.parametrize("path", ["/users//", "/users/spr-student-1//", "//users/", "/schools//students/"])
def test_two_slashes_in_a_row_are_an_empty_id(server: Server, path: str) -> None:
    reply = server.get(ROOT + path)
    assert (reply.status, reply.json["statusInfoSet"]["imsx_codeMinor"]) == (404, "unknownobject")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "BREW"])
def test_other_methods_are_refused(server: Server, method: str) -> None:
    reply = server.get(f"{ROOT}/users", method)
    assert reply.status == 400
    assert reply.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize("letter", ["a", "é", "語", "😀"])
def test_the_longest_filter_is_taken_whatever_its_letters(server: Server, letter: str) -> None:
    """Percent-encoded, a letter can take twelve bytes."""
    reply = server.get(f"{ROOT}/users?limit=1&filter=" + quote(f"familyName!='{letter * 4082}'"))
    assert reply.ids == ["shv-coach-1"]
    assert reply.headers["X-Total-Count"] == "26"


@pytest.mark.parametrize(("length", "minor"), [(20_000, "invalid_filter_field"), (100_000, "invaliddata")])
def test_a_longer_filter_is_refused_in_the_one_envelope(server: Server, length: int, minor: str) -> None:
    """By itself, or with the whole request line."""
    reply = server.get(f"{ROOT}/users?filter=" + quote(f"familyName!='{'a' * length}'"))
    assert (reply.status, reply.json["statusInfoSet"]["imsx_codeMinor"]) == (400, minor)


@pytest.mark.parametrize("length", [100, 1000, 2000, 4000])
def test_the_headers_stay_small_enough_for_proxies(server: Server, length: int) -> None:
    """Of an answer's head many proxies take 8 kB, and `Link` repeats the whole query in each address."""
    reply = server.get(f"{ROOT}/users?limit=1&offset=1&filter=" + quote(f"familyName!='{'a' * length}'"))
    assert reply.ids == ["shv-counselor-1"]
    assert sum(len(name) + len(value) + 4 for name, value in reply.headers.items()) < 8000
