"""The HTTP side of a worker in the process of the tests, which give it its turns and its seconds."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import pytest

from roster_service.server.http_server import HttpServer

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

LARGE = 2**24
KERNEL_BYTES = 4096
# The most bytes of a body at a path.
BODIES = {"/upload": LARGE}


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answers `/large` with 16 MB, `/same` with 304, `/often` with 429, `/fails` not at all, `/breaks` in part;
    anything else with its path and its body."""
    path = environ["PATH_INFO"]
    length = int(environ.get("CONTENT_LENGTH") or 0)
    answer = f"{path} {environ['wsgi.input'].read(length).decode()}".encode()
    status = "200 OK"
    match path:
        case "/large":
            answer = bytes(LARGE)
        case "/same":
            status, answer = "304 NOT MODIFIED", b""
        case "/often":
            status = "429 TOO MANY REQUESTS"
        case "/fails":
            raise ValueError(path)
        case "/breaks":
            start_response(status, [("Content-Length", "100")])(b"x")
            raise ValueError(path)
    start_response(status, [("ETag", '"1"')] if path == "/same" else [("Content-Length", str(len(answer)))])
    return [answer]


application.find_body_bytes = lambda head: BODIES.get(head.path)  # type: ignore[attr-defined]


class Worker:
    """A server that the tests drive, and connections to it."""

    def __init__(
        self,
        listener: socket.socket,
        stack: contextlib.ExitStack,
        served: WSGIApplication = application,
        *,
        has_siblings: bool = False,
    ) -> None:
        self.server = HttpServer(served, [listener], has_siblings=has_siblings)
        # The tests alone count seconds; those of a slow machine would come beside them.
        self.server._counted_at = float("inf")
        self._address = listener.getsockname()
        self._stack = stack

    def connect(self, sent: bytes = b"", receive_bytes: int = 0) -> socket.socket:
        """A connection that has sent something, once the server has it. `receive_bytes`: the kernel's buffer."""
        connection = self._stack.enter_context(socket.socket())
        if receive_bytes:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        connection.connect(self._address)
        connection.setblocking(False)
        self.send(connection, sent)
        return connection

    def send(self, connection: socket.socket, sent: bytes) -> None:
        """Sends all of it, as far as the server takes it, and lets the server work."""
        while sent:
            with contextlib.suppress(BlockingIOError):
                sent = sent[connection.send(sent) :]
            self.work(1)
        self.work()

    def work(self, turns: int = 8) -> None:
        """Gives the server some turns."""
        for _ in range(turns):
            self.server.take_turn(0.001)

    def receive(self, connection: socket.socket, most: int = 2 * LARGE) -> bytes:
        """What the server sends, until it has no more for now; or so many bytes of it."""
        received, tries = bytearray(), 0
        while len(received) < most and tries < 3:
            try:
                part = connection.recv(min(2**20, most - len(received)))
            except BlockingIOError:
                tries += 1
            else:
                tries = 0 if part else 3
                received += part
            self.work(1)
        return bytes(received)

    def ask(self, connection: socket.socket, path: str) -> bytes:
        """The answer to a request."""
        self.send(connection, f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        return self.receive(connection)

    def is_open(self, connection: socket.socket) -> bool:
        """Whether the server has not closed it."""
        try:
            return connection.recv(1, socket.MSG_PEEK) != b""
        except BlockingIOError:
            return True
        except ConnectionError:
            return False

    def count_until_closed(self, connection: socket.socket, each_second: Callable[[], None], most: int) -> int:
        """The seconds after which the server closes it; `most` if it does not."""
        for second in range(most):
            if not self.is_open_at_server(connection):
                return second
            with contextlib.suppress(OSError):
                each_second()
            self.work()
            self.server.count_second()
        return most

    def is_open_at_server(self, connection: socket.socket) -> bool:
        """Whether the server still has it, whatever it has sent that is not read."""
        return connection.getsockname() in {channel.addr for channel in self.server.channels.values()}


@pytest.fixture
def worker() -> Iterator[Worker]:
    """A server on a port of its own."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        made = Worker(listener, stack)
        yield made
        made.server.close()
