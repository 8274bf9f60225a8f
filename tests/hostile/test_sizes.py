"""What is far too long, too deep or too much: refused in the door's own words, and the next request is answered."""

from __future__ import annotations

import contextlib
import json
import select
import socket
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlencode

import pytest

from roster_service.server.http_parser import LINE_BYTES
from tests.contract.client import ROOTS, RosterClient
from tests.contract.test_server import Server, server
from tests.vendor.client import Account, VendorClient

pytestmark = pytest.mark.shows(
    "Load", "Request line, headers, body and query parameters have bounds, and statements a time."
)

__all__ = ["server"]

ROOT = ROOTS["v1p2"]
MANY = 20_000
CHUNK = 65_536

BODIES: list[Any] = [
    pytest.param(b"[" * 60_000, id="deep lists"),
    pytest.param(b'{"a":' * 12_000, id="deep objects"),
    pytest.param(b"[" * 30_000 + b"]" * 30_000, id="deep lists that end"),
    pytest.param(b'{"districtlea":' + b"[" * 25_000 + b"]" * 25_000 + b"}", id="a deep district"),
    pytest.param(b'{"limit":' + b"9" * 60_000 + b"}", id="an endless number"),
    pytest.param(b'{"limit":1e' + b"9" * 20 + b"}", id="an endless exponent"),
    pytest.param(b'{"districtlea":"' + b"x" * 60_000 + b'"}', id="an endless text"),
    pytest.param(json.dumps({f"k{number}": 0 for number in range(5_000)}).encode(), id="many keys"),
    pytest.param(json.dumps({"districtlea": "x", "schools": ["x"] * 9_000}).encode(), id="many schools"),
    pytest.param(b'{"districtlea":"' + b"x" * 5_000_000 + b'"}', id="a body of 5 MB"),
]


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("path", ["/v1/login", "/v1/students"])
def test_a_body_that_is_too_much_is_refused(vendor: VendorClient, account: Account, path: str, body: bytes) -> None:
    headers = {"x-api-key": account.api_key, "Authorization": f"Bearer {vendor.token(account)}"}
    answer = vendor.send(path, raw=body, headers=headers)
    assert answer.outcome == (400, "bad-request")
    # What was sent is not sent back.
    assert len(answer.body) < 2_000


@pytest.mark.parametrize("length", [10_000, 1_000_000])
def test_a_long_path_or_header_is_refused(client: RosterClient, vendor: VendorClient, length: int) -> None:
    long = "x" * length
    answers = [
        client.call("v1p2", f"/users/{long}"),
        client.call("v1p2", f"/{long}"),
        client.call("v1p2", "/users" + "/x" * (length // 2)),
        client.call("v1p2", "/orgs", bearer=long),
        client.call("v1p2", "/orgs", {long: "x"}),
        client.call("v1p2", "/orgs", {"limit": "9" * length}),
        client.call("v1p2", "/orgs", {"filter": long}),
    ]
    assert [answer.status for answer in answers] == [404, 404, 404, 401, 400, 400, 400]
    assert all(len(answer.body) < 2_000 for answer in answers)
    assert vendor.send("/v1/students", {}, headers={"x-api-key": long}).outcome == (403, "Forbidden")


# The longest text that each parameter takes, one that is longer by a character, and the word of its refusal.
BOUNDS: list[Any] = [
    pytest.param("limit", "10000", "10001", "invaliddata", id="limit"),
    pytest.param("offset", "9" * 18, "9" * 19 + "0", "invaliddata", id="offset"),
    pytest.param("filter", f"name!='{'x' * 4088}'", f"name!='{'x' * 4089}'", "invalid_filter_field", id="filter"),
    pytest.param("filter", f"name!='{'é' * 4088}'", f"name!='{'é' * 4089}'", "invalid_filter_field", id="letters"),
    pytest.param("sort", "x" * 512, "x" * 513, "invaliddata", id="sort"),
    pytest.param("sort", "a." * 255 + "a", "a." * 10_000 + "a", "invaliddata", id="dots"),
    pytest.param("orderBy", "desc", "desc" * 5_000, "invaliddata", id="orderBy"),
    pytest.param("fields", "x" * 4096, "x" * 4097, "invaliddata", id="fields"),
    pytest.param("fields", "x," * 2047 + "x", "x," * 2048 + "x", "invaliddata", id="many-fields"),
]


@pytest.mark.parametrize(("name", "longest", "longer", "minor"), BOUNDS)
def test_every_parameter_has_a_longest_text(server: Server, name: str, longest: str, longer: str, minor: str) -> None:
    taken = server.get(f"{ROOTS['v1p1']}/orgs?{urlencode({name: longest})}")
    assert (taken.status, len(taken.json.get("statusInfoSet", {}).get("imsx_description", "")) < 2_000) == (200, True)
    refused = server.get(f"{ROOTS['v1p1']}/orgs?{urlencode({name: longer})}")
    assert (refused.status, refused.json["statusInfoSet"]["imsx_codeMinor"]) == (400, minor)
    assert len(refused.body) < 2_000


def test_a_repeated_parameter_is_as_long_as_all_of_its_texts(server: Server) -> None:
    half = urlencode({"fields": "x" * 2048})
    taken, refused = (server.get(f"{ROOTS['v1p1']}/orgs?{half}&{half}{more}") for more in ("", "x"))
    assert (taken.status, refused.status) == (200, 400)


def test_many_parameters_are_refused(client: RosterClient) -> None:
    query = [("fields", "name")] * MANY
    assert client.call("v1p2", "/orgs", query).status == 400
    assert client.ask_token("&".join(["scope=x"] * MANY)).status in (400, 401, 413)


def send_raw(server: Server, head: bytes) -> tuple[bytes, int]:
    """What is answered to these bytes, and how many of them were sent until then; empty where the server hangs up."""
    sent, answer = 0, b""
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        # What waits in this process's own buffer counts as sent.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, CHUNK)
        with contextlib.suppress(ConnectionError):
            while sent < len(head) and not select.select([connection], [], [], 0)[0]:
                sent += connection.send(head[sent : sent + CHUNK])
            while part := connection.recv(CHUNK):
                answer += part
    return answer, sent


def assert_refused_as_unreadable(answer: bytes) -> None:
    """Nothing, or the envelope of the rostering interface."""
    if answer:
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.splitlines()[0] == b"HTTP/1.1 400 Bad Request"
        assert b"Content-Type: application/json" in head.splitlines()
        assert json.loads(body)["statusInfoSet"]["imsx_codeMinor"] == "invaliddata"
        assert len(body) < 500


HEADS: list[Any] = [
    pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: " + b"x" * 1_000_000 + b"\r\n\r\n", id="a header of 1 MB"),
    pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X-A: x\r\n" * 5_000 + b"\r\n", id="5,000 headers"),
    pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\nX A: x\r\n\r\n", id="a space in a name"),
    pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\nX_A\x00: x\r\n\r\n", id="a NUL in a name"),
    pytest.param(
        b"POST /v1/login HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        id="two lengths",
    ),
    pytest.param(b"POST /v1/login HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n", id="a negative length"),
    pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\r\n\r\n", id="TLS to a plain port"),
    pytest.param(b"nonsense\r\n\r\n", id="no request line"),
    pytest.param(b"GET / HTTP/9.9\r\nHost: x\r\n\r\n", id="another version"),
]


MEGABYTES = 16 * 2**20
ENDLESS: list[Any] = [
    pytest.param(f"GET {ROOT}/users?filter=".encode() + b"x" * MEGABYTES, id="line"),
    pytest.param(b"GET " + b"x/" * (MEGABYTES // 2), id="path"),
    pytest.param(b"G" * MEGABYTES, id="method"),
    pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * MEGABYTES, id="header"),
    pytest.param(b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: %060000d\r\n" % (n, n) for n in range(90)), id="headers"),
]


@pytest.mark.parametrize("head", ENDLESS)
def test_a_head_without_an_end_is_refused_before_it_is_there(server: Server, head: bytes) -> None:
    """Reading all of it takes a worker's time that grows with the square of its length."""
    answer, sent = send_raw(server, head)
    # The kernel takes some of it that nobody reads.
    assert sent < len(head) // 2
    assert_refused_as_unreadable(answer)
    assert server.get(f"{ROOTS['v1p1']}/orgs").status == 200


@pytest.mark.parametrize(("length", "minor"), [(LINE_BYTES, "invalid_filter_field"), (LINE_BYTES + 1, "invaliddata")])
@pytest.mark.parametrize("text", ["x", "x-"])
def test_the_longest_request_line_is_read(server: Server, text: str, length: int, minor: str) -> None:
    """Whatever is in it: a pattern that begins anew at each word of it would take a worker longer than it may."""
    start, end = f"{ROOTS['v1p1']}/users?filter=", " HTTP/1.1"
    wanted = length - len("GET " + start + end)
    reply = server.get(start + (text * wanted)[:wanted])
    assert (reply.status, reply.json["statusInfoSet"]["imsx_codeMinor"]) == (400, minor)


@pytest.mark.parametrize("head", HEADS)
def test_a_head_that_no_server_takes_is_refused_and_the_next_is_answered(server: Server, head: bytes) -> None:
    answer, _ = send_raw(server, head)
    assert_refused_as_unreadable(answer)
    assert server.get(f"{ROOTS['v1p1']}/orgs").status == 200


@pytest.mark.shows("Logs and transport", "No answer names the software of the server.")
def test_no_answer_of_the_real_server_names_its_software(server: Server) -> None:
    """Of the rostering interface, the token endpoint, the vendor interface, the pages, and what is refused."""
    for method, target in (
        ("GET", f"{ROOTS['v1p1']}/orgs"),
        ("GET", f"{ROOT}/orgs"),
        ("GET", f"{ROOTS['v1p1']}/nowhere"),
        ("POST", "/oauth/token"),
        ("POST", "/v1/login"),
        ("GET", "/v1/students"),
        ("GET", "/docs"),
        ("GET", "/nowhere"),
        ("GET", "/.well-known/jwks.json"),
    ):
        connection = HTTPConnection("127.0.0.1", server.port, timeout=30)
        connection.request(method, target)
        response = connection.getresponse()
        response.read()
        connection.close()
        names = {name.lower() for name, _ in response.getheaders()}
        assert not names & {"server", "x-powered-by", "via"}, (target, response.getheaders())
        assert response.getheader("X-Content-Type-Options") == "nosniff"
        assert {"date", "content-length"} <= names
