"""The longest body of a request, which the server asks for before it reads the body."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from flask import Flask

# The extension of an application that bounds the body of a `POST` by its head: it takes a `RequestHead`, and returns
# the most bytes, None for the bound of the service.
BODY_BYTES = "roster_body_bytes"
# A member of the WSGI environment of a request whose body the server has not read, because it is too long.
BODY_REFUSED = "roster.body_refused"


@dataclass(frozen=True)
class RequestHead:
    """The head of a request. `headers`: their values by their names, in any case."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]


def find_body_bytes(app: object, head: RequestHead) -> int | None:
    """Returns the most bytes that the body of a request may have; None for the bound of the service."""
    ask = app.extensions.get(BODY_BYTES) if isinstance(app, Flask) and head.method == "POST" else None
    return None if ask is None else ask(head)
