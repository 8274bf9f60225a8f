"""The middleware that limits the database time of each request."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from roster_service.db.deadline import limit_time

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


# The member of the WSGI environment with the instant at which the server had the whole request, by `time.monotonic`.
ARRIVED_AT = "roster.arrived_at"


class TimeLimit:
    """Gives each request `seconds` for its work with the database. The time in which it waited for its turn counts."""

    def __init__(self, app: WSGIApplication, seconds: int) -> None:
        self._app = app
        self._seconds = seconds

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        now = time.monotonic()
        with limit_time(self._seconds - (now - environ.get(ARRIVED_AT, now))):
            return self._app(environ, start_response)
