"""`python -m tests.bench.slow_clients`: the time of ordinary requests, alone and beside slow clients.

Measured through nginx, and at the service itself. Slow clients, all at once: 200 connections that are half open, 20
that send a byte a second, 50 that ask for a page of 10,000 records and read 1 kB of it a second. The service itself
closes these connections after 5 to 20 seconds. The ordinary requests, pages of 100 users, are sent one after the other,
each over a connection of its own. Needs nginx. SECONDS: of each measurement (30).
"""

from __future__ import annotations

import os
import socket
import statistics
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

from tests.contract.client import ROOTS
from tests.deploy.behind import serve_behind
from tests.deploy.proxy import Proxy, Reply
from tests.deploy.slow import DRIPPING, HALF_OPEN, READING, slow_clients

SECONDS = float(os.environ.get("SECONDS", "30"))
PATH = f"{ROOTS['v1p2']}/users?limit=100"
PAGE = f"{ROOTS['v1p2']}/enrollments?limit=10000"


@dataclass(frozen=True)
class Bare:
    """The service itself."""

    port: int

    def connect(self, source: str = "127.0.0.1", receive_bytes: int = 0) -> socket.socket:
        """A connection from an address of this machine; `receive_bytes`: the kernel's buffer for what arrives."""
        connection = socket.socket()
        if receive_bytes:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        connection.bind((source, 0))
        connection.connect(("127.0.0.1", self.port))
        return connection

    def ask(self, method: str, target: str, headers: Mapping[str, str]) -> Reply:
        """One request over a connection of its own, with the headers that a proxy sends."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, target, headers=dict(headers))
            response = connection.getresponse()
            return Reply(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()


def measure(server: Proxy | Bare, bearer: Mapping[str, str], seconds: float) -> list[float]:
    """The seconds that each request takes. RuntimeError where one is not answered with a page."""
    taken, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        begin = time.perf_counter()
        reply = server.ask("GET", PATH, bearer)
        taken.append(time.perf_counter() - begin)
        if reply.status != 200:
            raise RuntimeError(f"{reply.status}: {reply.body[:300]!r}")
    return taken


def show(name: str, taken: list[float]) -> None:
    """Prints the median, the 95th percentile and the maximum, in milliseconds."""
    p95 = statistics.quantiles(taken, n=20)[-1] if len(taken) > 1 else taken[0]
    figures = f"{statistics.median(taken) * 1000:8.1f} {p95 * 1000:8.1f} {max(taken) * 1000:8.1f}"
    print(f"{name:<60} {len(taken):>8} {figures}")


def main() -> None:
    """Measures, and prints a row for each."""
    with tempfile.TemporaryDirectory(prefix="roster-slow-") as home, serve_behind(Path(home)) as behind:
        servers = {"through nginx": behind.proxy, "bare": Bare(behind.service_port)}
        print(f"{'':<60} {'requests':>8} {'median':>8} {'p95':>8} {'max':>8}  (ms)")
        for name, server in servers.items():
            measure(server, behind.bearer, 3)
            show(f"{name}, alone", measure(server, behind.bearer, SECONDS))
            with slow_clients(server, PAGE, behind.bearer):
                # The service makes their pages meanwhile.
                pages = f"{name}, while {READING} slow readers get their pages made"
                show(pages, measure(server, behind.bearer, SECONDS))
                beside = f"{name}, beside {HALF_OPEN} half-open, {DRIPPING} dripping, {READING} reading"
                show(beside, measure(server, behind.bearer, SECONDS))
            show(f"{name}, alone again", measure(server, behind.bearer, SECONDS))


if __name__ == "__main__":
    main()
