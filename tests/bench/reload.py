"""`python -m tests.bench.reload [--home DIR]`: the longest time without a response while SIGHUP replaces the workers.

A client asks for pages of 100 users, one after the other: over a connection each, and over one that it keeps as long
as the service does. SECONDS: of each measurement (20), more than the old workers go on serving. WORKERS: of the
service (2).
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import os
import signal
import statistics
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tests.bench import place as places
from tests.bench.load import HOST
from tests.bench.place import OURS, find_port, open_place, serve

SECONDS = float(os.environ.get("SECONDS", "20"))
WORKERS = int(os.environ.get("WORKERS", "2"))
PATH = "/ims/oneroster/v1p1/users?limit=100"


def measure(port: int, headers: Mapping[str, str], keeps: bool, seconds: float) -> list[float]:
    """The seconds from each response to the next one. Raises RuntimeError where one is no page, and OSError or
    HTTPException where a request gets none."""
    gaps: list[float] = []
    end = time.monotonic() + seconds
    last = time.perf_counter()
    with contextlib.closing(http.client.HTTPConnection(HOST, port, timeout=60)) as connection:
        while time.monotonic() < end:
            # It connects again where the last response has closed the connection.
            connection.request("GET", PATH, headers=dict(headers))
            response = connection.getresponse()
            response.read()
            if response.status != 200:
                raise RuntimeError(f"a request got {response.status}")
            if not keeps:
                connection.close()
            gaps.append(time.perf_counter() - last)
            last = time.perf_counter()
    return gaps


def show(name: str, gaps: list[float]) -> None:
    """Prints the median and the longest gap, in milliseconds."""
    print(f"{name:<40} {len(gaps):>8} {statistics.median(gaps) * 1000:8.1f} {max(gaps) * 1000:8.1f}", flush=True)


def main() -> None:
    """Measures, and prints a row for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path)
    places.APPLICATIONS = {}
    with open_place(20_000, parser.parse_args().home) as place:
        settings = replace(place.settings, port=find_port(), workers=WORKERS)
        with serve(settings, OURS, place.url) as server:
            headers = replace(place, servers={"ours": server}).authorize()
            measure(server.port, headers, False, 2)
            print(f"{'':<40} {'requests':>8} {'median':>8} {'longest':>8}  (ms)")
            for keeps in (False, True):
                name = "one connection" if keeps else "a connection for each request"
                show(name, measure(server.port, headers, keeps, SECONDS))
                os.kill(server.pid, signal.SIGHUP)
                show(f"{name}, with SIGHUP", measure(server.port, headers, keeps, SECONDS))


if __name__ == "__main__":
    main()
