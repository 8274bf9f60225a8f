"""Ids in paths: a sourcedId may hold a slash, which a client writes %2F.

WSGI hands over the path decoded, where such a slash looks like any other. The middleware goes back to the address
as it was sent and keeps each segment's own slashes and percent signs encoded; the converter decodes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, unquote_to_bytes

from werkzeug.routing import BaseConverter

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

RAW_PATH = "roster.raw_path"
# A request may name the host in its first line (RFC 9112, section 3.2.2).
ABSOLUTE = re.compile(r"^https?://[^/?]*/?", re.IGNORECASE)


class EncodedIds:
    """The middleware: rewrites PATH_INFO so that a slash inside a segment stays apart from the ones between them."""

    def __init__(self, app: WSGIApplication) -> None:
        self.app = app

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        sent = ABSOLUTE.sub("/", environ.get("RAW_URI") or environ.get("REQUEST_URI") or "")
        prefix = environ.get("SCRIPT_NAME", "")
        if sent.startswith("/"):
            environ[RAW_PATH] = sent.partition("?")[0]
            segments = environ[RAW_PATH].removeprefix(quote(prefix)).split("/")
            kept = (unquote_to_bytes(item).replace(b"%", b"%25").replace(b"/", b"%2F") for item in segments)
            environ["PATH_INFO"] = b"/".join(kept).decode("latin-1")
        else:
            # A server that does not tell what was sent; then no id with a slash can be told from two segments.
            environ[RAW_PATH] = quote(prefix) + quote(environ.get("PATH_INFO", "").encode("latin-1"))
            environ["PATH_INFO"] = environ.get("PATH_INFO", "").replace("%", "%25")
        return self.app(environ, start_response)


class IdConverter(BaseConverter):
    """A path segment that is an id: any text, its own slashes included."""

    def to_python(self, value: str) -> str:
        """The id itself."""
        return unquote(value)

    def to_url(self, value: Any) -> str:
        """The id as one segment."""
        return quote(str(value), safe="")


def read_raw_path(environ: WSGIEnvironment) -> str:
    """The path of a request as an answer shows it."""
    return format_raw_path(str(environ[RAW_PATH]))


def format_raw_path(sent: str) -> str:
    """A path as it was sent, percent-encoded; its commas too, because clients split `Link` on commas. Without the one
    slash that may end it, so that links and tags are the same with it and without it."""
    return sent.removesuffix("/").replace(",", "%2C")
