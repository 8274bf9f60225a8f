"""The HTTP side of a worker: waitress receives requests and sends responses, and waits for no client.

A client that sends or reads slowly costs a socket and its bytes, never the worker: the application runs when a whole
request has arrived, and its response is sent while the next one runs. The application runs in the same thread, one
request at a time, so a worker needs one database connection of each role.
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.server import TcpWSGIServer

from roster_service.schemas.vendor_bodies import MAX_BODY_BYTES
from roster_service.server.http_channel import UNBOUNDED, Channel
from roster_service.server.http_parser import HEAD_BYTES
from roster_service.server.http_turns import SerialTasks
from roster_service.web.time_limit import RequestHead

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

# Open connections of a worker. Each takes up to two files, and a process may have 1,024 on most systems.
CONNECTIONS = 400
# New connections that wait for a worker that accepts them, in the kernel.
BACKLOG = 2048
# Bytes of responses that the connections of a worker keep in memory until they are sent. Beyond that, a response waits
# in a temporary file.
MEMORY_BYTES = 64 * 2**20

log = logging.getLogger(__name__)


class HttpServer:
    """The connections of a worker, which are in `channels` by their files. `listeners`: sockets that listen;
    `has_siblings`: whether other workers listen too."""

    def __init__(
        self,
        application: WSGIApplication,
        listeners: Sequence[socket.socket],
        *,
        has_siblings: bool = False,
    ) -> None:
        self._connections: dict[int, Any] = {}
        self.channels: dict[int, Channel] = {}
        self._tasks = SerialTasks(has_siblings=has_siblings)
        bounds = ResponseBounds(application, self.channels, MAX_BODY_BYTES)
        self._listeners = [
            Listener(
                application,
                self._connections,
                _sock=listener,
                dispatcher=self._tasks,
                adj=bounds,
                sockinfo=(listener.family, listener.type, listener.proto, listener.getsockname()),
                bind_socket=False,
            )
            for listener in listeners
        ]
        for listener in self._listeners:
            listener.active_channels = self.channels
        self._counted_at = time.monotonic()
        self._is_full = False

    def take_turn(self, seconds: float) -> int:
        """Receives and sends what is ready, then answers one request. Waits up to `seconds` if nothing is ready.
        Returns the number of requests that it answered."""
        if self._poll(self._tasks.find_wait(seconds)):
            # The request of a new connection takes part in the turns, and the next connection is accepted. So a worker
            # accepts faster than it answers, and no caller waits in the kernel behind the connections of another one.
            # If it accepted all of them, the other workers would have none to share.
            self._poll(0)
        if time.monotonic() - self._counted_at >= 1:
            self._counted_at = time.monotonic()
            self.count_second()
        return self._tasks.run_next()

    def _poll(self, seconds: float) -> bool:
        """Receives, sends and accepts what is ready, at most one connection. Returns whether it accepted one."""
        for listener in self._listeners:
            listener.has_accepted = False
        wasyncore.loop(timeout=seconds, use_poll=True, map=self._connections, count=1)
        return any(listener.has_accepted for listener in self._listeners)

    def set_ending(self) -> None:
        """Lets each connection end with its next response."""
        for listener in self._listeners:
            listener.is_ending = True
        self._tasks.refusal_seconds = 0

    def stop_accepting(self) -> None:
        """Accepts what is waiting, and no more."""
        for listener in self._listeners:
            while listener.accept_one():
                pass
            listener.close()

    def close(self) -> None:
        """Closes every connection, and stops to listen."""
        for channel in list(self.channels.values()):
            channel.handle_close()
        for listener in self._listeners:
            listener.close()

    def is_quiet(self) -> bool:
        """Whether no request is lost if the worker ends."""
        return all(channel.is_quiet for channel in self.channels.values())

    def count_second(self) -> None:
        """Closes the connections whose time is up. `take_turn` calls it once a second, or later if the worker was busy:
        clients do not pay for that."""
        for channel in list(self.channels.values()):
            channel.count_second()
        was_full, self._is_full = self._is_full, len(self.channels) >= CONNECTIONS
        if self._is_full and not was_full:
            log.warning("a worker has %s connections, its most; new ones wait", CONNECTIONS)


class Listener(TcpWSGIServer):  # type: ignore[misc]  # waitress has no types
    """A socket that listens."""

    channel_class = Channel
    is_ending = False
    has_accepted = False

    def readable(self) -> bool:
        """Whether a connection may be accepted."""
        return self.accepting and len(self.active_channels) < CONNECTIONS

    def pull_trigger(self) -> None:
        """Does nothing: waitress wakes its event loop by this, from another thread."""

    def handle_accept(self) -> None:
        """Accepts a connection."""
        self.has_accepted = True
        super().handle_accept()

    def accept_one(self) -> bool:
        """Accepts a connection. Returns False if none was waiting, or the worker has enough."""
        before = len(self.active_channels)
        if before < CONNECTIONS:
            self.handle_accept()
        return len(self.active_channels) > before


class ResponseBounds(Adjustments):  # type: ignore[misc]
    """waitress's settings, with a bound for the next response that follows from those that are not sent yet.
    `channels`: all connections, which change; `body_bytes`: the most bytes of a body."""

    def __init__(self, application: WSGIApplication, channels: Mapping[int, Channel], body_bytes: int) -> None:
        super().__init__(
            ident=None,
            backlog=BACKLOG,
            max_request_header_size=HEAD_BYTES,
            # The application refuses less by itself, in the format of its interface.
            max_request_body_size=body_bytes + 1,
            outbuf_high_watermark=UNBOUNDED,
            # ROSTER_TRUSTED_PROXIES decides what a proxy may say.
            clear_untrusted_proxy_headers=False,
            log_socket_errors=False,
        )
        self._application = application
        self._channels = channels

    def find_bounds(self, head: RequestHead) -> ResponseBounds:
        """Returns the settings for a request with a large body. While another one is under way, they allow none, so
        that operators fill neither the disk nor the time of a worker at once."""
        if any(channel.has_large_body(self) for channel in self._channels.values()):
            return self
        # An application that is not ours, as of a benchmark, has no bounds of its own.
        ask = getattr(self._application, "find_body_bytes", None)
        most = None if ask is None else ask(head)
        return self if most is None else ResponseBounds(self._application, self._channels, most)

    @property
    def outbuf_overflow(self) -> int:
        """The bytes of the next response that may stay in memory."""
        waiting: int = sum(channel.total_outbufs_len for channel in self._channels.values())
        return max(0, MEMORY_BYTES - waiting)
