"""The bounds of a request: its time, its body, and the notice that a worker stops.

`roster run` holds a pipe to the standard input of gunicorn and its workers, and writes nothing to it. When it stops,
or is killed, the pipe has no writer any more; each worker sees that by itself.
"""

from __future__ import annotations

import select
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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


# The extension of an application that bounds the body of a request by its head: it takes a `RequestHead`, and returns
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


PIPE = 0
# Seconds from the announcement of a stop to the stop: load balancers look at intervals.
NOTICE_SECONDS = 5


def is_draining() -> bool:
    """Returns True if `roster run` is stopping or gone: the worker still serves, but no new requests should be sent to
    it. False as well where the process was started in another way."""
    poll = select.poll()
    # An end of the pipe without a writer is reported unasked.
    poll.register(PIPE, 0)
    return any(event & select.POLLHUP for _, event in poll.poll(0))
