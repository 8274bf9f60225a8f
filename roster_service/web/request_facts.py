"""What is remembered of a request while it is answered: its id, who asks, what they were shown."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from flask import g

from roster_service.access.access_log.writer import Disclosure, MakeFilterText


@dataclass(frozen=True)
class RequestingVendor:
    """The vendor of a request, and the client id or the beginning of the API key that it came with."""

    vendor_id: int
    caller: str


def get_request_id() -> str:
    """The id of this request, made when it is first asked for."""
    if "request_id" not in g:
        g.request_id = secrets.token_hex(8)
    return str(g.request_id)


def set_requesting_vendor(vendor_id: int, caller: str) -> None:
    """Remembers who asks."""
    g.vendor = RequestingVendor(vendor_id, caller)


def set_disclosure(records: int, describe: MakeFilterText) -> None:
    """Remembers how many records the answer holds; `describe` says what was asked, later and elsewhere."""
    g.disclosure = Disclosure(records, describe)


def get_requesting_vendor() -> RequestingVendor | None:
    """Who asks; None while that is not known."""
    found: RequestingVendor | None = g.get("vendor")
    return found


def get_disclosure() -> Disclosure | None:
    """What the answer holds; None where it holds no data."""
    found: Disclosure | None = g.get("disclosure")
    return found
