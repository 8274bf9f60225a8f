"""The middleware that gives each request its time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from roster_service.db.deadline import limit_time

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


class TimeLimit:
    """Lets the database work for a request for so many `seconds`, and what it has begun by then to its end."""

    def __init__(self, app: WSGIApplication, seconds: int) -> None:
        self._app = app
        self._seconds = seconds

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        with limit_time(self._seconds):
            return self._app(environ, start_response)
