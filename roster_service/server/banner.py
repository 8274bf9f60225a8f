"""Removes the `Server` header, with which gunicorn names itself in every response and for which it has no setting."""

from __future__ import annotations

from typing import Any

from gunicorn.http.wsgi import Response


def remove_banner() -> None:
    """Makes gunicorn, in this process, send no `Server` header."""
    Response.default_headers = _list_headers_without_banner


_LIST_HEADERS = Response.default_headers


def _list_headers_without_banner(response: Any) -> list[str]:
    """Returns the header lines that gunicorn adds to a response, without `Server`."""
    return [line for line in _LIST_HEADERS(response) if not line.lower().startswith("server:")]
