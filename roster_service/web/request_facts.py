"""What is remembered of a request while it is answered: its id, who asks, what they were shown."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from flask import g

from roster_service.access.access_log.writer import Describe, Shown


@dataclass(frozen=True)
class Asker:
    """The vendor of a request, and the client id or the beginning of the API key that it came with."""

    vendor_id: int
    caller: str


def request_id() -> str:
    """The id of this request, made when it is first asked for."""
    if "request_id" not in g:
        g.request_id = secrets.token_hex(8)
    return str(g.request_id)


def note_asker(vendor_id: int, caller: str) -> None:
    """Remembers who asks."""
    g.asker = Asker(vendor_id, caller)


def note_shown(records: int, describe: Describe) -> None:
    """Remembers how many records the answer holds; `describe` says what was asked, later and elsewhere."""
    g.shown = Shown(records, describe)


def find_asker() -> Asker | None:
    """Who asks; None while that is not known."""
    found: Asker | None = g.get("asker")
    return found


def find_shown() -> Shown | None:
    """What the answer holds; None where it holds no data."""
    found: Shown | None = g.get("shown")
    return found
