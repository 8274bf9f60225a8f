"""Where a token is given: over https, as far as the settings or a trusted proxy say so, and on the machine itself."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.extent import every_other

from . import many_settings
from .client import ROOTS, RosterClient
from .conftest import Served
from .test_server import serving

NAME = "roster.example.org"
OUTSIDE = "203.0.113.5"
HTTPS = {"X-Forwarded-Proto": "https"}
HTTP = {"X-Forwarded-Proto": "http"}
OWN_HOST = "127.0.0.1:8000"
BACKEND = "backend:8000"
INVALID_HOST = 'bad host/"x'
# Both are this machine; gunicorn believes the first one what a proxy says, unless it is told otherwise.
PROXY, FAR_PROXY = "127.0.0.1", "127.0.0.2"


def of(client: str, *before: str) -> dict[str, str]:
    """What a proxy says of its client."""
    return {"X-Forwarded-For": ", ".join([*before, client])}


NONE: dict[str, str] = {}
ONE = {"trusted_proxies": "1"}
TWO = {"trusted_proxies": "2"}
PUBLIC = {"public_url": f"https://{NAME}"}
# The settings, the peer, its Host, its headers -> what links begin with, or None where the token is refused.
CASES: list[Any] = [
    pytest.param(NONE, PROXY, OWN_HOST, {}, f"http://{OWN_HOST}", id="on-the-machine"),
    pytest.param(NONE, PROXY, "localhost", {}, "http://localhost", id="localhost"),
    pytest.param(NONE, FAR_PROXY, OWN_HOST, {}, f"http://{OWN_HOST}", id="another-address-of-the-machine"),
    pytest.param(NONE, PROXY, NAME, {}, None, id="a-name"),
    pytest.param(NONE, PROXY, NAME, HTTPS, None, id="a-proxy-that-is-not-trusted"),
    pytest.param(NONE, FAR_PROXY, NAME, HTTPS, None, id="a-far-proxy-that-is-not-trusted"),
    pytest.param(NONE, PROXY, NAME, {"X-Forwarded-Ssl": "on"}, None, id="another-header-of-gunicorn's"),
    pytest.param(NONE, PROXY, NAME, {"X-Forwarded-Host": "localhost"}, None, id="a-host-that-is-not-trusted"),
    pytest.param(NONE, PROXY, OWN_HOST, of(OUTSIDE), f"http://{OWN_HOST}", id="a-client-that-is-not-trusted"),
    pytest.param(NONE, PROXY, INVALID_HOST, {}, None, id="an-invalid-host"),
    pytest.param(ONE, PROXY, NAME, HTTPS | of(OUTSIDE), f"https://{NAME}", id="proxy"),
    pytest.param(ONE, FAR_PROXY, NAME, HTTPS | of(OUTSIDE), f"https://{NAME}", id="far-proxy"),
    pytest.param(ONE, FAR_PROXY, NAME, HTTP | of(OUTSIDE), None, id="proxy-over-http"),
    pytest.param(ONE, FAR_PROXY, NAME, of(OUTSIDE), None, id="proxy-that-names-no-scheme"),
    pytest.param(ONE, PROXY, "localhost", of(OUTSIDE), None, id="a-made-up-host"),
    pytest.param(ONE, PROXY, "localhost", of(OUTSIDE, "127.0.0.1"), None, id="a-made-up-client"),
    pytest.param(ONE, PROXY, NAME, {"X-Forwarded-Proto": "https, http"} | of(OUTSIDE), None, id="a-made-up-scheme"),
    pytest.param(ONE, PROXY, NAME, {"X-Forwarded-Proto": "x y:"} | of(OUTSIDE), None, id="no-scheme"),
    pytest.param(ONE, PROXY, INVALID_HOST, HTTPS | of(OUTSIDE), None, id="an-invalid-host-over-https"),
    pytest.param(
        ONE,
        FAR_PROXY,
        BACKEND,
        HTTPS | of(OUTSIDE) | {"X-Forwarded-Host": NAME},
        f"https://{NAME}",
        id="forwarded-host",
    ),
    pytest.param(ONE, PROXY, OWN_HOST, {}, f"http://{OWN_HOST}", id="past-the-proxy-on-the-machine"),
    pytest.param(TWO, FAR_PROXY, NAME, HTTPS | of("10.0.0.1", OUTSIDE), f"https://{NAME}", id="two-proxies"),
    pytest.param(PUBLIC, FAR_PROXY, BACKEND, {}, f"https://{NAME}", id="public"),
    pytest.param(PUBLIC | ONE, FAR_PROXY, NAME, HTTPS | of(OUTSIDE), f"https://{NAME}", id="public-and-proxy"),
    pytest.param({"public_url": f"http://{NAME}"}, PROXY, OWN_HOST, {}, None, id="public-over-http"),
    pytest.param(
        {"public_url": f"http://{NAME}"} | ONE, PROXY, NAME, HTTPS | of(OUTSIDE), None, id="public-over-http-and-proxy"
    ),
    pytest.param({"public_url": "http://localhost:8000"}, PROXY, NAME, {}, "http://localhost:8000", id="own"),
    pytest.param({"public_url": "http://localhost:8000"} | ONE, PROXY, NAME, of(OUTSIDE), None, id="own-from-outside"),
]


@dataclass(frozen=True)
class Edge:
    """A gunicorn, and what it writes."""

    port: int
    log: Path

    def ask(
        self, peer: str, method: str, target: str, headers: Mapping[str, str], body: str | None = None
    ) -> tuple[int, dict[str, str], Any]:
        """The status, the headers and the JSON of the answer to a request that comes from an address."""
        with contextlib.closing(
            HTTPConnection("127.0.0.1", self.port, timeout=120, source_address=(peer, 0))
        ) as connection:
            connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            for name, text in headers.items():
                connection.putheader(name, text)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
                connection.putheader("Content-Type", "application/x-www-form-urlencoded")
            connection.endheaders(None if body is None else body.encode())
            response = connection.getresponse()
            return response.status, dict(response.getheaders()), json.loads(response.read())


@pytest.fixture(scope="module")
def edge(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Edge]:
    """One gunicorn for all settings: it knows none of them, and hands every header to the application."""
    log = tmp_path_factory.mktemp("edge") / "log"
    application = f"{many_settings.__name__}:app"
    with log.open("wb") as output, serving(served, None, output, application, log_level="warning") as (server, _):
        yield Edge(server.port, log)


@pytest.mark.shows(
    "Logs and transport",
    "All that takes a password, API key or signature, or shows a secret or token, refuses plain http by one rule.",
)
@pytest.mark.parametrize(("settings", "peer", "host", "headers", "root"), every_other(CASES))
def test_a_token_is_given_where_nobody_reads_along(
    edge: Edge,
    client: RosterClient,
    settings: Mapping[str, str],
    peer: str,
    host: str,
    headers: Mapping[str, str],
    root: str | None,
) -> None:
    chosen = json.dumps({f"ROSTER_{name.upper()}": text for name, text in settings.items()})
    sent = {"Host": host, **headers, many_settings.HEADER: chosen}
    form = urlencode(client.form(scope="v1p1/roster.readonly"))
    status, answered, body = edge.ask(peer, "POST", "/oauth/token", sent, form)
    if root is None:
        assert (status, body["error"]) == (400, "invalid_request")
        assert answered["Cache-Control"] == "no-store"
        assert ("Host" if host == INVALID_HOST else "https") in body["error_description"]
        # RFC 6749, section 5.2.
        assert not {'"', "\\"} & set(body["error_description"])
    else:
        assert status == 200, body
        sent["Authorization"] = f"Bearer {body['access_token']}"
        for _ in range(3):
            status, answered, body = edge.ask(peer, "GET", f"{ROOTS['v1p1']}/classes?limit=1", sent)
            assert status == 200
            assert answered["Link"].startswith(f"<{root}{ROOTS['v1p1']}/classes?limit=1&offset=1&")
            assert body["classes"][0]["school"]["href"].startswith(f"{root}{ROOTS['v1p1']}/orgs/")
    assert edge.log.read_text() == ""


@pytest.mark.shows(
    "Logs and transport",
    "All that takes a password, API key or signature, or shows a secret or token, refuses plain http by one rule.",
)
@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("127.0.0.1", 200),
        ("127.0.0.2", 200),
        ("::1", 200),
        ("::ffff:127.0.0.1", 200),
        ("192.0.2.1", 400),
        ("::ffff:192.0.2.1", 400),
        ("2001:db8::1", 400),
        ("localhost", 400),
        ("", 400),
    ],
)
def test_a_client_is_on_the_machine_by_its_address(
    client: RosterClient, served: Served, address: str, status: int
) -> None:
    """Whatever its Host says."""
    http, form = served.app.test_client(), client.form(scope="v1p1/roster.readonly")
    with http.post("/oauth/token", data=form, environ_overrides={"REMOTE_ADDR": address}) as answer:
        assert answer.status_code == status
