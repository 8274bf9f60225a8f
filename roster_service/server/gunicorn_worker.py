"""The gunicorn worker that `roster run` configures: gunicorn's sync worker, with bounds on the size of a request's
head, and with the service's own response and log line for a request that gunicorn refuses."""

from __future__ import annotations

import contextlib
from http import HTTPStatus
from typing import Any

from gunicorn import util
from gunicorn.http import message
from gunicorn.http.errors import LimitRequestHeaders, LimitRequestLine, ParseException
from gunicorn.http.parser import RequestParser
from gunicorn.workers.sync import SyncWorker

from roster_service.errors import FAULT_DESCRIPTION, Problem, describe_fault

# The bound of the request line. The longest filter takes 49 kB, if each of its letters takes 12 bytes. gunicorn's own
# bound is at most 8 kB, or none; without a bound it searches the whole line again after each 8 kB that arrive.
LINE_BYTES = 65_536
# The bound of all headers together. The permission token of a vendor with many single schools takes 64 kB alone.
HEADERS_BYTES = 131_072

REASONS = {
    LimitRequestLine: f"the request line has more than {LINE_BYTES} bytes",
    LimitRequestHeaders: f"the headers have more than {HEADERS_BYTES} bytes, or there are too many, or one is too long",
}


class BoundedRequest(message.Request):  # type: ignore[misc]  # gunicorn has no types
    """A request whose head is refused as soon as it is too long, before the rest of it arrives."""

    def read_into(self, unreader: Any, buf: bytearray, stop: bool = False) -> None:
        """Appends the bytes that have arrived to `buf`. Raises LimitRequestLine or LimitRequestHeaders if they exceed a
        bound."""
        super().read_into(unreader, buf, stop)
        # gunicorn sets `uri` when it has read the whole request line.
        if self.uri is None and len(buf) > LINE_BYTES and buf.find(b"\r\n", 0, LINE_BYTES + 2) < 0:
            raise LimitRequestLine(len(buf), LINE_BYTES)
        if len(buf) > HEADERS_BYTES:
            raise LimitRequestHeaders(REASONS[LimitRequestHeaders])


class Worker(SyncWorker):  # type: ignore[misc]  # gunicorn has no types
    """A worker process, which answers one request at a time."""

    def init_process(self) -> None:
        """Runs the worker until it ends."""
        RequestParser.mesg_class = BoundedRequest
        super().init_process()

    def handle_error(self, req: Any, client: Any, addr: Any, exc: BaseException) -> None:
        """Answers a request that gunicorn cannot parse, or whose processing failed outside the application.

        gunicorn's own method answers in HTML and logs the address, or the bytes that it cannot parse: both can hold
        data of students.
        """
        peer = addr[0] if addr else "a local socket"
        if req is None and isinstance(exc, ParseException):
            self.log.warning("a request from %s cannot be read: %s", peer, type(exc).__name__)
            reason = REASONS.get(type(exc), "this is not an HTTP/1.1 request")
            response = make_refusal(Problem.PARAMETER, reason, req)
        else:
            self.log.error("a request from %s was not answered: %s", peer, describe_fault(exc))
            response = make_refusal(Problem.INTERNAL, FAULT_DESCRIPTION, req)
        # The client may have closed the connection.
        with contextlib.suppress(OSError):
            util.write_nonblock(client, response)


def make_refusal(problem: Problem, description: str, req: Any) -> bytes:
    """Returns the bytes of a refusal, head and body, in the error format of the rostering interface. `req`: gunicorn's
    request, or None if gunicorn could not parse it."""
    # Imported here to keep gunicorn's master process, which imports this module, small.
    from roster_service.rostering.status_info import STATUS_INFO, make_failure

    request = "a request that was not read" if req is None else f"{req.method} {req.path}"[:500]
    body = make_failure(problem, description, request).encode()
    status = HTTPStatus(STATUS_INFO[problem][0])
    head = (
        f"HTTP/1.1 {status} {status.phrase}",
        "Connection: close",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
        "",
        "",
    )
    return "\r\n".join(head).encode("latin-1") + body
