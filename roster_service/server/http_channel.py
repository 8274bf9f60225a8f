"""A connection: it closes itself if its client is too slow, and a response waits in it until its client has read it."""

from __future__ import annotations

import contextlib
import enum
import fcntl
import logging
import math
import socket
import struct
import sys
import termios
import time
from dataclasses import dataclass
from typing import Any

from waitress.adjustments import Adjustments
from waitress.channel import HTTPChannel
from waitress.utilities import RequestEntityTooLarge

from roster_service.errors import describe_fault
from roster_service.server.http_parser import BoundedParser
from roster_service.server.http_tasks import ApplicationTask, RefusalTask

# The least rate of a body and of a response.
BYTES_PER_SECOND = 8192
# The longest time of a body, whatever its rate: while an upload is under way, the worker takes no other one.
BODY_SECONDS = 1800
# More than any response has: the application never waits for a reader.
UNBOUNDED = 2**60
# waitress's names of the headers by which callers are told apart, the first one that a request has.
CREDENTIALS = ("AUTHORIZATION", "X_API_KEY")

log = logging.getLogger(__name__)


class ConnectionState(enum.Enum):
    """The state of a connection."""

    HEAD = enum.auto()
    BODY = enum.auto()
    RUNNING = enum.auto()
    SENDING = enum.auto()
    # After a refusal, the rest of the request is read: a connection that is closed before would lose the refusal.
    REFUSED = enum.auto()
    IDLE = enum.auto()


# The seconds that a connection has for a state. While a body or a response is on its way, each `BYTES_PER_SECOND` bytes
# give a second back.
SECONDS = {
    ConnectionState.HEAD: 5,
    ConnectionState.BODY: 10,
    ConnectionState.RUNNING: math.inf,
    ConnectionState.SENDING: 10,
    ConnectionState.REFUSED: 5,
    # More than the minute for which load balancers keep connections: the side that asks should be the one that closes.
    ConnectionState.IDLE: 75,
}


@dataclass(frozen=True)
class Caller:
    """The sender of requests. `key`: a hash of the credentials, or of the address if a request has none; several
    callers may share an address."""

    key: int
    is_address: bool


class Channel(HTTPChannel):  # type: ignore[misc]  # waitress has no types
    """A connection."""

    parser_class = BoundedParser
    task_class = ApplicationTask
    error_task_class = RefusalTask
    # Each response gets a buffer of its own, whose bound is that of `ResponseBounds` at that time.
    current_outbuf_count = UNBOUNDED

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self.is_refused = False
        self.was_throttled = False
        self._has_answered = False
        self._state: ConnectionState | None = None
        self._amount = 0
        self._seconds_left = 0.0
        self._body_seconds = 0
        super().__init__(*arguments, **named)

    # --- time ---------------------------------------------------------------------------------------------------------

    def find_state(self) -> tuple[ConnectionState, int]:
        """Returns the state of the connection, and the bytes of the body that have arrived or of the response that the
        client has not received."""
        if self.total_outbufs_len:
            return ConnectionState.SENDING, self.total_outbufs_len + count_unreceived(self.socket)
        if self.requests:
            return ConnectionState.RUNNING, 0
        if self.is_refused:
            return ConnectionState.REFUSED, 0
        if self.request is not None and self.request.headers_finished:
            return ConnectionState.BODY, self.request.body_bytes_received
        return ConnectionState.IDLE if self.request is None and self._has_answered else ConnectionState.HEAD, 0

    def count_second(self) -> None:
        """Takes a second from the time of the connection, and closes it if no time is left."""
        state, amount = self.find_state()
        moved, self._amount = abs(amount - self._amount), amount
        if state is not self._state:
            self._state, self._seconds_left = state, SECONDS[state]
        else:
            self._seconds_left = min(SECONDS[state], self._seconds_left - 1 + moved / BYTES_PER_SECOND)
        self._body_seconds = self._body_seconds + 1 if state is ConnectionState.BODY else 0
        if self._seconds_left <= 0 or self._body_seconds > BODY_SECONDS:
            self.handle_close()

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is lost if the connection is closed."""
        has_begun = self.request is not None or self.requests or self.total_outbufs_len
        return not has_begun and self._state is not None and self._state is self.find_state()[0]

    def has_large_body(self, usual: Adjustments) -> bool:
        """Whether a request is under way whose body may have more bytes than is `usual`."""
        return any(request is not None and request.adj is not usual for request in (self.request, *self.requests))

    # --- turns --------------------------------------------------------------------------------------------------------

    def find_caller(self) -> Caller:
        """Returns the caller of the first request."""
        headers = self.requests[0].headers
        for name in CREDENTIALS:
            if headers.get(name):
                return Caller(hash((name, headers[name])), is_address=False)
        return Caller(hash(self.addr[0]), is_address=True)

    # --- what waitress calls ------------------------------------------------------------------------------------------

    def service(self) -> None:
        """Answers the first request of the connection."""
        request = self.requests[0]
        if isinstance(request.error, RequestEntityTooLarge):
            # The application refuses it by its length, in the format of its interface. The body is not read on.
            request.headers["CONTENT_LENGTH"] = str(max(request.content_length, request.body_bytes_received))
            request.error = None
            request.connection_close = self.is_refused = True
        super().service()
        self._has_answered = True

    def readable(self) -> bool:
        """Whether bytes of the client are wanted now."""
        return self._is_lingering or bool(super().readable())

    def handle_read(self) -> None:
        """Receives; the rest of a request that is refused is thrown away."""
        if self._is_lingering:
            with contextlib.suppress(OSError):
                self.recv(self.adj.recv_bytes)
        else:
            super().handle_read()

    def received(self, data: bytes) -> bool:
        """Takes what was received, and says of each request that is whole when it was. Returns whether it took any."""
        is_taken = bool(super().received(data))
        for request in self.requests:
            request.arrived_at = request.arrived_at or time.monotonic() - find_age(self.socket)
        return is_taken

    def handle_write(self) -> None:
        """Sends, and closes after the last response."""
        if self.is_refused and self.close_when_flushed and not self.total_outbufs_len:
            self.close_when_flushed: bool = False
            with contextlib.suppress(OSError):
                self.socket.shutdown(socket.SHUT_WR)
        else:
            super().handle_write()

    def handle_expt(self) -> None:
        """Closes a connection with urgent data, which HTTP does not have."""
        self.handle_close()

    def handle_error(self) -> None:
        """Logs an exception of the connection without its message, which can quote the request, and closes it."""
        error = sys.exception()
        log.error("a connection failed: %s", error and describe_fault(error))
        self.handle_close()

    @property
    def _is_lingering(self) -> bool:
        return self.is_refused and not (self.requests or self.total_outbufs_len or self.close_when_flushed)


def find_age(connection: socket.socket) -> float:
    """Returns the seconds since the kernel received the last bytes of a connection, which is longer ago than the worker
    read them if it was answering another request; 0 where the system does not say."""
    if sys.platform != "linux":
        return 0
    # `tcpi_last_data_recv` of the structure `tcp_info`, in milliseconds.
    place = struct.Struct("52xI")
    try:
        facts = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, place.size)
    except OSError:
        # Not a connection of TCP.
        return 0
    return float(place.unpack(facts)[0]) / 1000


def count_unreceived(connection: socket.socket) -> int:
    """Returns the bytes that the kernel keeps because the client has not received them; 0 if the system cannot say."""
    try:
        [count] = struct.unpack("i", fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(4)))
    except OSError:
        return 0
    return int(count)
