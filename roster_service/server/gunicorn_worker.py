"""The worker that `roster run` has gunicorn start: gunicorn's sync worker, with a bound for the head of a request, and
with this service's own answer and log line for a request that gunicorn refuses by itself."""

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

# Bytes of a request line. The longest filter takes 49 kB where each of its letters takes 12 bytes. gunicorn's own limit
# is 8 kB at most, or none; with none it looks through the whole line again with each 8 kB that arrive.
LINE_BYTES = 65_536
# Bytes of all headers together: one of them, the permission token of a vendor with many single schools, takes 64 kB.
HEADERS_BYTES = 131_072

REASONS = {
    LimitRequestLine: f"the request line has more than {LINE_BYTES} bytes",
    LimitRequestHeaders: f"the headers have more than {HEADERS_BYTES} bytes, or there are too many, or one is too long",
}


class BoundedRequest(message.Request):  # type: ignore[misc]  # gunicorn has no types
    """A request whose head is refused as soon as it is too long, whatever there is to come."""

    def read_into(self, unreader: Any, buf: bytearray, stop: bool = False) -> None:
        """Adds what has arrived to `buf`. Raises LimitRequestLine or LimitRequestHeaders where that is too much."""
        super().read_into(unreader, buf, stop)
        # There is no address before the whole line is read.
        if self.uri is None and len(buf) > LINE_BYTES and buf.find(b"\r\n", 0, LINE_BYTES + 2) < 0:
            raise LimitRequestLine(len(buf), LINE_BYTES)
        if len(buf) > HEADERS_BYTES:
            raise LimitRequestHeaders(REASONS[LimitRequestHeaders])


class Worker(SyncWorker):  # type: ignore[misc]  # gunicorn has no types
    """A worker process; it answers one request at a time."""

    def init_process(self) -> None:
        """Runs the worker until it ends."""
        RequestParser.mesg_class = BoundedRequest
        super().init_process()

    def handle_error(self, req: Any, client: Any, addr: Any, exc: BaseException) -> None:
        """Answers a request that gunicorn cannot read, or whose worker is ended while it answers.

        gunicorn itself answers in HTML, and logs the address, or the bytes that it cannot read: both can name pupils.
        """
        peer = addr[0] if addr else "a local socket"
        if req is None and isinstance(exc, ParseException):
            self.log.warning("a request from %s cannot be read: %s", peer, type(exc).__name__)
            answer = make_answer(Problem.PARAMETER, REASONS.get(type(exc), "this is no request of HTTP/1.1"), req)
        else:
            self.log.error("a request from %s was not answered: %s", peer, describe_fault(exc))
            answer = make_answer(Problem.INTERNAL, FAULT_DESCRIPTION, req)
        # The client may have gone.
        with contextlib.suppress(OSError):
            util.write_nonblock(client, answer)


def make_answer(problem: Problem, description: str, req: Any) -> bytes:
    """The head and the body of a refusal, in the envelope of the rostering interface. `req`: gunicorn's request, as far
    as there is one."""
    # Here, because the process that only starts workers needs none of what this imports.
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
