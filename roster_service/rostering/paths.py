"""Ids in paths: a sourcedId may contain a slash, which a client writes as %2F.

WSGI servers decode the path, so such a slash looks like a separator. The middleware takes the path as the client sent
it and leaves the slashes and percent signs inside each segment encoded; the converter decodes them.
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
# A request line may contain the absolute URL (RFC 9112, section 3.2.2).
ABSOLUTE = re.compile(r"^https?://[^/?]*/?", re.IGNORECASE)


class EncodedIds:
    """WSGI middleware that rewrites PATH_INFO so that a slash inside a segment stays encoded."""

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
            # The server does not pass the path as sent, so an id with a slash cannot be told from two segments.
            environ[RAW_PATH] = quote(prefix) + quote(environ.get("PATH_INFO", "").encode("latin-1"))
            environ["PATH_INFO"] = environ.get("PATH_INFO", "").replace("%", "%25")
        return self.app(environ, start_response)


class IdConverter(BaseConverter):
    """The URL converter for an id: a segment with any text, including encoded slashes."""

    def to_python(self, value: str) -> str:
        """Returns the decoded id."""
        return unquote(value)

    def to_url(self, value: Any) -> str:
        """Returns the id as one encoded segment."""
        return quote(str(value), safe="")


def read_raw_path(environ: WSGIEnvironment) -> str:
    """Returns the path of a request as responses contain it. The middleware must have run."""
    return format_raw_path(read_sent_path(environ))


def read_sent_path(environ: WSGIEnvironment) -> str:
    """Returns the path of a request as the client sent it, percent-encoded. The middleware must have run."""
    return str(environ[RAW_PATH])


def format_raw_path(sent: str) -> str:
    """Returns a percent-encoded path as responses contain it.

    It encodes commas too, because clients split `Link` on commas. It removes one trailing slash, so that links and
    entity tags do not depend on it.
    """
    return sent.removesuffix("/").replace(",", "%2C")
