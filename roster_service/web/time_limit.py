"""The middleware that limits the database time of each request."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from roster_service.db.deadline import limit_time

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


class TimeLimit:
    """Gives each request `seconds` for its work with the database."""

    def __init__(self, app: WSGIApplication, seconds: int) -> None:
        self._app = app
        self._seconds = seconds

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        with limit_time(self._seconds):
            return self._app(environ, start_response)
