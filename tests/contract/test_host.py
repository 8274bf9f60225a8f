"""A request whose Host is no host name is refused at every path, and no address is built on it."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator

import pytest

from roster_service.errors import ErrorProfile
from roster_service.server.late_app import make_refusing_app
from roster_service.web.health import Need
from tests.extent import pair
from tests.offenders import in_one_test

from .client import ROOTS, RosterClient
from .conftest import Served
from .test_server import Server, serving

# The method and the path -> what of the body says the error of its interface.
PATHS = {
    **{
        ("GET", f"{root}{path}"): ("statusInfoSet", "imsx_codeMinor", "invaliddata")
        for root in ROOTS.values()
        for path in ("/orgs", "/orgs/spr-high", "/schools/spr-high/students?limit=1", "/nowhere", "", "/openapi.json")
    },
    **{("POST", f"{root}/orgs"): ("statusInfoSet", "imsx_codeMinor", "invaliddata") for root in ROOTS.values()},
    ("POST", "/v1/login"): ("code", "bad-request"),
    ("POST", "/v1/students"): ("code", "bad-request"),
    ("GET", "/v1/students"): ("code", "bad-request"),
    ("GET", "/v1/openapi.json"): ("code", "bad-request"),
    ("GET", "/v1/nowhere"): ("code", "bad-request"),
    ("POST", "/oauth/token"): ("error", "invalid_request"),
    ("GET", "/oauth/token"): ("error", "invalid_request"),
    ("GET", "/.well-known/jwks.json"): ("error", "invalid_request"),
    ("GET", "/"): ("error", "invalid_request"),
    ("GET", "/docs"): ("error", "invalid_request"),
    ("GET", "/docs/guide"): ("error", "invalid_request"),
    ("GET", "/nowhere"): ("error", "invalid_request"),
}
HOSTS = [
    'bad host/"x',
    "a/../b",
    "a<script>",
    "name:port",
    "name:99999",
    "[::1",
    "user@name",
    "",
    "näme",
    "a\\b",
    "a?b#c",
]


# One path of each interface. Whether a host is valid does not depend on the path; how it is refused does, alone.
OF_EACH_INTERFACE = [
    ("GET", f"{ROOTS['v1p1']}/orgs"),
    ("POST", "/v1/login"),
    ("POST", "/oauth/token"),
    ("GET", "/docs"),
]
ASKED = [
    pytest.param(*asked, host, id=f"{' '.join(asked)}-{host}")
    for host, asked in pair(list(PATHS), HOSTS, OF_EACH_INTERFACE)
]


@in_one_test
@pytest.mark.parametrize(("method", "path", "host"), ASKED)
def test_an_invalid_host_is_refused_at_every_path(
    served: Served, client: RosterClient, method: str, path: str, host: str
) -> None:
    """Before the token, which is right. Each path with one host; one of each interface with every host, unless the run
    tries all."""
    version = "v1p2" if ROOTS["v1p2"] in path else "v1p1"
    http, bearer = served.app.test_client(), {"Authorization": f"Bearer {client.token(version)}"}
    with http.open(path, method=method, headers=bearer, environ_overrides={"HTTP_HOST": host}) as answer:
        assert answer.status_code == 400
        *keys, word = PATHS[method, path]
        found = answer.json
        for key in keys:
            found = found[key]
        assert found == word
        assert "Location" not in answer.headers
        assert "Link" not in answer.headers
        assert not host or host not in answer.text.replace(path, "")


@pytest.mark.parametrize("settings", [{"public_url": "https://roster.example.org"}, {"trusted_proxies": 1}], ids=str)
def test_an_invalid_host_is_refused_whatever_the_settings(
    make_served: Callable[..., Served], served: Served, settings: dict[str, object]
) -> None:
    """A public URL builds the addresses; a trusted proxy forwards the Host."""
    own = make_served(served.url, **settings)
    given = {"Host": "bad host"} if "public_url" in settings else {"X-Forwarded-Host": "bad host"}
    for path in (f"{ROOTS['v1p1']}/orgs", "/docs", "/nowhere", "/v1/login"):
        assert own.client.fetch(path, headers=given).status == 400


@pytest.mark.parametrize("path", [f"{ROOTS['v1p1']}/orgs", "/v1/login", "/oauth/token", "/nowhere"])
def test_an_invalid_host_is_refused_while_the_database_is_away(path: str) -> None:
    app = make_refusing_app(lambda: Need.DATABASE, ErrorProfile.SPECIFICATION)
    with app.test_client().get(path, headers={"Host": "bad host"}) as answer:
        assert answer.status_code == 400


VALID = ["roster.example.org", "ROSTER.example:8443", "xn--n3h.example", "127.0.0.1", "[::1]:8000", "localhost"]


@pytest.mark.parametrize("host", VALID)
def test_a_valid_host_is_what_addresses_are_built_on(client: RosterClient, host: str) -> None:
    answer = client.call("v1p1", "/classes", {"limit": "1"}, headers={"Host": host})
    assert answer.status == 200
    assert answer.links["next"].lower().startswith(f"http://{host}{ROOTS['v1p1']}/".lower())


@pytest.fixture(scope="module")
def server(served: Served) -> Iterator[Server]:
    """A real one, which reads heads by itself."""
    with serving(served, {"loglevel": "critical"}) as (server, _):
        yield server


HEADS = {
    "none": ("HTTP/1.1", "", 400),
    "none in HTTP/1.0": ("HTTP/1.0", "", 200),
    "blank": ("HTTP/1.1", "Host: \r\n", 400),
    "two": ("HTTP/1.1", "Host: a.example\r\nHost: b.example\r\n", 400),
    "two in one": ("HTTP/1.1", "Host: a.example, b.example\r\n", 400),
    "a tab": ("HTTP/1.1", "Host: a\tb\r\n", 400),
    "one": ("HTTP/1.1", "Host: a.example\r\n", 200),
    "one in punycode": ("HTTP/1.1", "Host: xn--n3h.example\r\n", 200),
}


@pytest.mark.parametrize("name", HEADS)
def test_a_real_server_takes_one_valid_host(server: Server, name: str) -> None:
    protocol, header, status = HEADS[name]
    bearer = f"Authorization: Bearer {server.token}\r\nConnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(f"GET {ROOTS['v1p1']}/orgs {protocol}\r\n{header}{bearer}".encode())
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert int(head.split()[1]) == status
    if status == 400:
        assert json.loads(body)["statusInfoSet"]["imsx_codeMinor"] == "invaliddata"
