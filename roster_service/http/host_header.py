"""The `Host` of a request: `href` and `Link` are built on it where no public URL is set."""

from __future__ import annotations

from flask import Flask, request
from werkzeug.exceptions import BadRequest

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
