"""What a request says of itself: its address, its id, its host."""

from __future__ import annotations

import functools
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from flask import Flask, Response, g, request
from werkzeug.exceptions import BadRequest

from roster_service.auth.throttling.limits import RateState
from roster_service.errors import Problem

INVALID = "the Host header is missing or is no host name with an optional port"


def find_root_url(public_url: str | None) -> str:
    """Returns the scheme and host that the client uses: those of `public_url`, if there is one."""
    # Werkzeug's `host_url` decodes punycode, and no header can have the result.
    return public_url or f"{request.scheme}://{request.host}".lower()


def register_host_check(app: Flask) -> None:
    """Registers the refusal of an invalid `Host`; it must come before all other functions that see a request first."""
    app.before_request(refuse_invalid_host)


def refuse_invalid_host() -> None:
    """Raises BadRequest where the `Host`, or the one that a trusted proxy forwards, is no host name (RFC 9110, section
    7.2), and where a request of HTTP/1.1 has none (RFC 9112, section 3.2)."""
    is_missing = "HTTP_HOST" not in request.environ and request.environ.get("SERVER_PROTOCOL") == "HTTP/1.1"
    # Werkzeug shows an invalid one as ''.
    if is_missing or not request.host:
        raise BadRequest(INVALID)


REQUEST_ID = "X-Request-Id"
# Every response carries these headers.
COMMON_HEADERS = {"X-Content-Type-Options": "nosniff", "Vary": "Accept-Encoding"}
# The ids that the service takes over from a client or a proxy: UUIDs, trace ids, nginx's `$request_id`.
_WELL_FORMED_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{7,63}")
_PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")
# The paths for programs that watch the service: they ask every few seconds.
LIVE_PATH, READY_PATH, METRICS_PATH = WATCHED_PATHS = ("/livez", "/readyz", "/metrics")
# The documented path of a request whose path the service does not have.
UNKNOWN_PATH = "(unknown)"


@dataclass(frozen=True)
class RequestingVendor:
    """The vendor of a request. `caller`: the OAuth client id, or the prefix of the API key."""

    vendor_id: int
    caller: str


@dataclass
class RequestFacts:
    """The facts of a request. `id`: the one in its `X-Request-Id`, if that is well formed, else a new one. `path`: as
    the documentation writes it, `/users/{sourcedId}`: no log has a path as it was sent, because that can hold the id of
    a student. `address`: the network address that it came from. `began`: the instant of its beginning, in seconds of
    `time.perf_counter`.

    The service learns the others on the way. `vendor`: once its credentials are verified. `has_operator`: whether an
    operator's session was found. `named_caller`: the client id
    that its body names, before anything is verified. `rate`: the state of the vendor's rate limit. `refusal`: why an
    interface refuses it. `failure`: why the service cannot answer it. `records`: how many its response discloses.
    `finds_nothing`: whether its filter fits no record that the vendor sees; `has_unknown_word`: whether it compares a
    field with a word that is none of the field's.
    `describe_shape`: its parameters, with every value of a filter masked; it is called only if the request is slow.
    """

    id: str
    method: str
    path: str
    address: str | None
    began: float
    vendor: RequestingVendor | None = None
    has_operator: bool = False
    named_caller: str | None = None
    rate: RateState | None = None
    refusal: Problem | None = None
    failure: str | None = None
    records: int | None = None
    finds_nothing: bool = False
    has_unknown_word: bool = False
    describe_shape: Callable[[], str] | None = None


def get_request_facts() -> RequestFacts:
    """Returns the facts of the current request. The first call, which begins its clock, makes them."""
    found: RequestFacts | None = g.get("facts")
    if found is None:
        now, own_id = time.perf_counter(), choose_request_id(request.headers.get(REQUEST_ID, ""))
        path = UNKNOWN_PATH if request.url_rule is None else _make_documented_path(request.url_rule.rule)
        found = g.facts = RequestFacts(own_id, request.method, path, request.remote_addr, now)
    return found


def choose_request_id(given: str) -> str:
    """Returns the id that a request brings, if it is well formed, else a new one."""
    return given if _WELL_FORMED_ID.fullmatch(given) else secrets.token_hex(8)


@functools.cache
def _make_documented_path(rule: str) -> str:
    return _PARAMETER.sub(r"{\1}", rule)


def add_rate_headers(response: Response) -> Response:
    """Adds the `RateLimit` headers to a response, if the state of the limit is known. A hook of Flask."""
    state = get_request_facts().rate
    if state is not None:
        response.headers.extend(state.make_headers())
    return response


def add_common_headers(response: Response) -> Response:
    """Adds the headers that every response carries."""
    response.headers.update(COMMON_HEADERS)
    return response
