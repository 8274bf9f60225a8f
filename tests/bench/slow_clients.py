"""`python -m tests.bench.slow_clients`: what ordinary requests take through nginx, alone and beside slow clients.

Slow clients, all at once: 200 connections that are half open, 20 that send a byte a second, 50 that ask for a page of
10,000 records and read 1 kB of it a second. The ordinary requests, pages of 100 users, are sent one after the other.
Needs nginx. SECONDS: of each measurement (30).
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path

from tests.contract.client import ROOTS
from tests.deploy.behind import Behind, serve_behind
from tests.deploy.slow import DRIPPING, HALF_OPEN, READING, slow_clients

SECONDS = float(os.environ.get("SECONDS", "30"))
PATH = f"{ROOTS['v1p2']}/users?limit=100"
PAGE = f"{ROOTS['v1p2']}/enrollments?limit=10000"


def measure(behind: Behind, seconds: float) -> list[float]:
    """The seconds that each request takes. RuntimeError where one is not answered with a page."""
    taken, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        begin = time.perf_counter()
        reply = behind.proxy.ask("GET", PATH, behind.bearer)
        taken.append(time.perf_counter() - begin)
        if reply.status != 200:
            raise RuntimeError(f"{reply.status}: {reply.body[:300]!r}")
    return taken


def show(name: str, taken: list[float]) -> None:
    """Prints the median, the 95th percentile and the maximum, in milliseconds."""
    p95 = statistics.quantiles(taken, n=20)[-1]
    figures = f"{statistics.median(taken) * 1000:8.1f} {p95 * 1000:8.1f} {max(taken) * 1000:8.1f}"
    print(f"{name:<44} {len(taken):>8} {figures}")


def main() -> None:
    """Measures, and prints a row for each."""
    with tempfile.TemporaryDirectory(prefix="roster-slow-") as home, serve_behind(Path(home)) as behind:
        measure(behind, 3)
        print(f"{'':<44} {'requests':>8} {'median':>8} {'p95':>8} {'max':>8}  (ms)")
        show("alone", measure(behind, SECONDS))
        with slow_clients(behind.proxy, PAGE, behind.bearer):
            # The service makes their pages meanwhile.
            show(f"while {READING} slow readers get their pages made", measure(behind, SECONDS))
            show(f"beside {HALF_OPEN} half-open, {DRIPPING} dripping, {READING} reading", measure(behind, SECONDS))
        show("alone again", measure(behind, SECONDS))


if __name__ == "__main__":
    main()
