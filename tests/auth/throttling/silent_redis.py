"""A Redis that accepts connections and never answers, as one that is frozen."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class SilentRedis:
    """The server, and the connections that it has accepted."""

    url: str
    accepted: list[socket.socket] = field(default_factory=list)


@contextlib.contextmanager
def freeze_redis() -> Iterator[SilentRedis]:
    """Listens until the block ends."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = SilentRedis(f"redis://127.0.0.1:{listener.getsockname()[1]}")

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    server.accepted.append(listener.accept()[0])

        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield server
        finally:
            # `close` alone does not wake the thread.
            listener.shutdown(socket.SHUT_RDWR)
            accepting.join()
            for connection in server.accepted:
                connection.close()
