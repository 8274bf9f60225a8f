"""gunicorn names itself in every answer, and has no setting against it: this takes the header out."""

from __future__ import annotations

from typing import Any

from gunicorn.http.wsgi import Response


def remove_banner() -> None:
    """Makes the gunicorn of this process send no `Server` header."""
    Response.default_headers = _list_headers_without_banner


_LIST_HEADERS = Response.default_headers


def _list_headers_without_banner(response: Any) -> list[str]:
    """gunicorn's own headers, as the lines that it sends."""
    return [line for line in _LIST_HEADERS(response) if not line.lower().startswith("server:")]
