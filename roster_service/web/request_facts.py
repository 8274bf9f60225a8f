"""Facts of the current request that several modules need: its id, its documented path, its vendor, the vendor's rate
limit, and the records that it discloses.

Flask's `g` keeps them until the request ends.
"""

from __future__ import annotations

import functools
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from flask import Response, g, request

from roster_service.access.throttling.rate_state import RateState
from roster_service.errors import Problem, ThrottledRequestError

REQUEST_ID = "X-Request-Id"
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


def get_request_id() -> str:
    """Returns the id of the request: the one in its `X-Request-Id`, if that is well formed, else one that the first
    call makes."""
    if "request_id" not in g:
        g.request_id = choose_request_id(request.headers.get(REQUEST_ID, ""))
    return str(g.request_id)


def choose_request_id(given: str) -> str:
    """Returns the id that a request brings, if it is well formed, else a new one."""
    return given if _WELL_FORMED_ID.fullmatch(given) else secrets.token_hex(8)


def get_documented_path() -> str:
    """Returns the path of the request as the documentation writes it, `/users/{sourcedId}`. No log has a path as it was
    sent, because that can hold the id of a student."""
    return UNKNOWN_PATH if request.url_rule is None else _make_documented_path(request.url_rule.rule)


@functools.cache
def _make_documented_path(rule: str) -> str:
    return _PARAMETER.sub(r"{\1}", rule)


def set_requesting_vendor(vendor: RequestingVendor) -> None:
    """Sets the vendor of the request, once its credentials are verified."""
    g.vendor = vendor


def set_named_caller(caller: str | None) -> None:
    """Sets the client id that the body of the request names, before anything is verified."""
    g.named_caller = caller


def get_named_caller() -> str | None:
    """Returns the client id that the body of the request names; None if it names none."""
    found: str | None = g.get("named_caller")
    return found


def set_refusal(problem: Problem) -> None:
    """Sets the reason for which the request is refused."""
    g.refusal = problem


def get_refusal() -> Problem | None:
    """Returns the reason for which the request is refused; None if no interface has refused it."""
    found: Problem | None = g.get("refusal")
    return found


def set_disclosed_records(number: int) -> None:
    """Sets the number of records that the response discloses."""
    g.disclosed_records = number


def start_clock() -> None:
    """Starts the clock of the request."""
    g.started = time.perf_counter()


def read_clock() -> float:
    """Returns the seconds since the request began."""
    return time.perf_counter() - float(g.started)


def set_failure(kind: str) -> None:
    """Sets the reason for which the service cannot answer this request, for its log line."""
    g.failure = kind


def get_failure() -> str | None:
    """Returns the reason for which the service could not answer the request, if it set one."""
    found: str | None = g.get("failure")
    return found


def set_shape(make_text: Callable[[], str]) -> None:
    """Sets the shape of the request: its parameters, with every value of a filter masked. `make_text`: called only if
    the request turns out to be slow."""
    g.shape = make_text


def get_shape() -> str | None:
    """Returns the shape of the request; None as long as its parameters are not checked."""
    return g.shape() if "shape" in g else None


def get_requesting_vendor() -> RequestingVendor | None:
    """Returns the vendor of the request; None as long as its credentials are not verified."""
    found: RequestingVendor | None = g.get("vendor")
    return found


def get_disclosed_records() -> int | None:
    """Returns the number of records that the response discloses; None if it is no response with records."""
    found: int | None = g.get("disclosed_records")
    return found


def require_rate(state: RateState | None) -> None:
    """Sets the state of the vendor's rate limit; None if it is not known. Raises ThrottledRequestError if the request
    exceeds it."""
    g.rate = state
    if state is not None and not state.admitted:
        raise ThrottledRequestError("too many requests; `Retry-After` says when to go on", max(1, state.wait))


def add_rate_headers(response: Response) -> Response:
    """Adds the `RateLimit` headers to a response, if the state of the limit is known. A hook of Flask."""
    state: RateState | None = g.get("rate")
    if state is not None:
        response.headers.update(state.make_headers())
    return response
