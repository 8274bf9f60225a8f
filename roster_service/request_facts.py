"""What is remembered of a request while it is answered: its id."""

from __future__ import annotations

import secrets

from flask import g


def request_id() -> str:
    """The id of this request, made when it is first asked for."""
    if "request_id" not in g:
        g.request_id = secrets.token_hex(8)
    return str(g.request_id)
