"""What is far too long, too deep or too much: refused in the door's own words, and the next request is answered."""

from __future__ import annotations

import json
import socket
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.contract.client import ROOTS, RosterClient
from tests.contract.test_server import Server, server
from tests.vendor.client import Account, VendorClient

__all__ = ["server"]

ROOT = ROOTS["v1p2"]
MANY = 20_000

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


def send_raw(server: Server, head: bytes) -> bytes:
    """The first line of what gunicorn answers to these bytes; empty where it hangs up."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(head)
        try:
            return connection.recv(65_536).partition(b"\r\n")[0]
        except ConnectionResetError:
            return b""


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
]


@pytest.mark.parametrize("head", HEADS)
def test_a_head_that_no_server_takes_is_refused_and_the_next_is_answered(server: Server, head: bytes) -> None:
    line = send_raw(server, head)
    assert line == b"" or line.split()[1][:1] == b"4", line
    assert server.get(f"{ROOTS['v1p1']}/orgs").status == 200


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
