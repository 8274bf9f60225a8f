"""Facts of the current request that several modules need: its id, its vendor, the vendor's rate limit, and the records
that it discloses.

Flask's `g` keeps them until the request ends.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from flask import Response, g

from roster_service.access.access_log.writer import Disclosure, MakeFilterText
from roster_service.access.throttling.rate_state import RateState
from roster_service.errors import ThrottledRequestError


@dataclass(frozen=True)
class RequestingVendor:
    """The vendor of a request. `caller`: the OAuth client id, or the prefix of the API key."""

    vendor_id: int
    caller: str


def get_request_id() -> str:
    """Returns the id of the request; the first call makes it."""
    if "request_id" not in g:
        g.request_id = secrets.token_hex(8)
    return str(g.request_id)


def set_requesting_vendor(vendor_id: int, caller: str) -> None:
    """Sets the vendor of the request, once its credentials are verified."""
    g.vendor = RequestingVendor(vendor_id, caller)


def set_disclosure(records: int, make_filter_text: MakeFilterText) -> None:
    """Sets the number of records in the response. `make_filter_text`: called later, in the thread of the access log."""
    g.disclosure = Disclosure(records, make_filter_text)


def get_requesting_vendor() -> RequestingVendor | None:
    """Returns the vendor of the request; None as long as its credentials are not verified."""
    found: RequestingVendor | None = g.get("vendor")
    return found


def get_disclosure() -> Disclosure | None:
    """Returns the disclosure of the response; None if the response has no records."""
    found: Disclosure | None = g.get("disclosure")
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
