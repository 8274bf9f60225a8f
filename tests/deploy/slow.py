"""Slow clients of every kind: connections that are half open, heads and bodies that drip, readers of large pages."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from tests.deploy.proxy import NAME

HALF_OPEN, DRIPPING, READING = 200, 20, 50
PAUSE_SECONDS = 1.0
# What a slow reader takes in a second, and what its kernel takes beside it.
READ_BYTES, KERNEL_BYTES = 1024, 4096


class Server(Protocol):
    """A server that slow clients connect to."""

    @property
    def port(self) -> int:
        """Where it listens."""

    def connect(self, source: str = "127.0.0.1", receive_bytes: int = 0) -> socket.socket:
        """A connection from an address of this machine; `receive_bytes`: the kernel's buffer for what arrives."""


class SlowClients:
    """Connections that are served a little once a second, from a thread, until they are closed."""

    def __init__(self) -> None:
        self.half_open: list[socket.socket] = []
        self.dripping: list[socket.socket] = []
        self.reading: list[socket.socket] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def close(self) -> None:
        """Ends, and closes every connection."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        for connection in (*self.half_open, *self.dripping, *self.reading):
            connection.close()

    def _run(self) -> None:
        while not self._ended.wait(PAUSE_SECONDS):
            # The proxy closes those that take too long.
            for connection in self.dripping:
                with contextlib.suppress(OSError):
                    connection.send(b"x")
            for connection in self.reading:
                with contextlib.suppress(OSError):
                    connection.recv(READ_BYTES)


@contextmanager
def slow_clients(server: Server, page: str, headers: Mapping[str, str]) -> Iterator[SlowClients]:
    """All of them, connected. Each reader asks for `page`; readers and dripping ones have addresses of their own."""
    clients = SlowClients()
    lines = "".join(f"{name}: {text}\r\n" for name, text in {"Host": NAME, **headers}.items())
    try:
        for number in range(HALF_OPEN):
            if number % 2:
                clients.half_open.append(socket.create_connection(("127.0.0.1", server.port), timeout=60))
            else:
                connection = server.connect()
                connection.send(b"GET / HT")
                clients.half_open.append(connection)
        for number in range(DRIPPING):
            connection = server.connect(f"127.0.1.{number + 1}")
            head = "POST /v1/login HTTP/1.1\r\n" + lines
            connection.send((head + "Content-Length: 60000\r\n\r\n" if number % 2 else head + "X-Slow: ").encode())
            clients.dripping.append(connection)
        for number in range(READING):
            connection = server.connect(f"127.0.2.{number + 1}", KERNEL_BYTES)
            connection.send(f"GET {page} HTTP/1.1\r\n{lines}\r\n".encode())
            connection.settimeout(0.01)
            clients.reading.append(connection)
        clients.start()
        yield clients
    finally:
        clients.close()
