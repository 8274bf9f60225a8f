"""`python -m tests.bench.fairness [--home DIR]`: what a vendor waits beside another vendor with greedy connections.

One vendor asks for pages of 100 users, one after the other over a connection each. The other one asks for pages of
PAGE (1000) records over 12 connections at once, again as soon as an answer is there: either it keeps to `Retry-After`,
or it comes back at once. SECONDS: of each measurement (4). ROUNDS: of measurements in turns (5). WORKERS: of the
service (2). AT_ONCE: the limit of the greedy vendor on requests at the same time; 1000 shows the service without it.
"""

from __future__ import annotations

import argparse
import base64
import collections
import contextlib
import http.client
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Thread

from roster_service.accounts import clients, vendor_rights, vendors
from roster_service.auth.credentials.api_keys import Allowance
from roster_service.auth.scopes import Scope, ScopeName
from roster_service.auth.throttling.limits import RosteringAllowance
from tests.actors import TESTER
from tests.bench import place as places
from tests.bench.load import HOST
from tests.bench.place import OURS, Place, Server, find_port, open_place, serve

SECONDS = float(os.environ.get("SECONDS", "4"))
ROUNDS = int(os.environ.get("ROUNDS", "5"))
WORKERS = int(os.environ.get("WORKERS", "2"))
PAGE = int(os.environ.get("PAGE", "1000"))
AT_ONCE = os.environ.get("AT_ONCE")
GREEDY = 12
ROOT = "/ims/oneroster/v1p1"
PAUSE_SECONDS = 0.02
# The greedy vendor begins so long before a measurement, and ends so long after it.
START_SECONDS = 1.5


@dataclass(frozen=True)
class Reply:
    """A status, the seconds that it took, and the seconds to wait."""

    status: int
    seconds: float
    wait: float


def ask(port: int, path: str, headers: Mapping[str, str]) -> Reply:
    """One request over a connection of its own."""
    begin = time.perf_counter()
    connection = http.client.HTTPConnection(HOST, port, timeout=60)
    connection.request("GET", path, headers=dict(headers))
    response = connection.getresponse()
    response.read()
    connection.close()
    return Reply(response.status, time.perf_counter() - begin, float(response.headers.get("Retry-After", 0)))


def add_client(place: Place, server: Server, name: str) -> dict[str, str]:
    """The header of a vendor of its own, who sees everything that the account of the place sees."""
    with place.engine.begin() as connection:
        email = f"{name}-{time.time_ns()}@vendors.example"
        vendors.add_vendor(connection, TESTER, email, name)
        for grant in next(vendor for vendor in vendors.list_vendors(connection) if vendor.grants).grants:
            vendor_rights.grant(
                connection, TESTER, email, grant.district_id, [grant.school_id] if grant.school_id else []
            )
        if AT_ONCE and name == "greedy":
            own = RosteringAllowance(None, None, int(AT_ONCE))
            vendors.change_allowance(connection, TESTER, email, Allowance(None, None, None), own)
        client = clients.add_client(connection, TESTER, email, "bench", [Scope("v1p1", ScopeName.FULL)])
    pair = base64.b64encode(f"{client.client_id}:{client.client_secret}".encode()).decode()
    headers = {"Authorization": f"Basic {pair}", "Content-Type": "application/x-www-form-urlencoded"}
    answer = server.fetch("/oauth/token", headers, "grant_type=client_credentials")
    return {"Authorization": f"Bearer {json.loads(answer.body)['access_token']}"}


def be_greedy(port: int, headers: Mapping[str, str], seconds: float, polite: bool) -> None:
    """Asks over all connections, and prints how many answers of which status came."""
    end = time.monotonic() + seconds
    statuses: collections.Counter[int] = collections.Counter()

    def work(number: int) -> None:
        offset = number * PAGE
        while time.monotonic() < end:
            reply = ask(port, f"{ROOT}/enrollments?limit={PAGE}&offset={offset}", headers)
            statuses[reply.status] += 1
            if reply.status == 200:
                offset = (offset + GREEDY * PAGE) % (100 * PAGE)
            elif polite:
                time.sleep(reply.wait)

    threads = [Thread(target=work, args=(number,)) for number in range(GREEDY)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps(statuses))


def measure(port: int, headers: Mapping[str, str], seconds: float) -> list[float]:
    """The seconds of each request of the vendor that asks for one page after the other."""
    taken, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        reply = ask(port, f"{ROOT}/users?limit=100", headers)
        if reply.status != 200:
            raise RuntimeError(f"the modest vendor got {reply.status}")
        taken.append(reply.seconds)
        time.sleep(PAUSE_SECONDS)
    return taken


def find_p95(taken: list[float]) -> float:
    """The 95th percentile."""
    return statistics.quantiles(taken, n=20)[-1]


def show(name: str, taken: list[float], alone: list[float], statuses: Mapping[str, int]) -> None:
    """Prints the median, the 95th percentile and the maximum, in milliseconds, and how often the 95th percentile of the
    vendor that is alone. `statuses`: of the answers that the greedy vendor got."""
    p95 = find_p95(taken)
    figures = f"{statistics.median(taken) * 1000:8.1f} {p95 * 1000:8.1f} {max(taken) * 1000:8.1f}"
    said = ", ".join(f"{count} x {status}" for status, count in sorted(statuses.items()))
    print(f"{name:<36} {len(taken):>8} {figures} {p95 / find_p95(alone):>6.2f}  {said}", flush=True)


@contextlib.contextmanager
def greedy_vendor(port: int, headers: Mapping[str, str], polite: bool, statuses: dict[str, int]) -> Iterator[None]:
    """A vendor that asks as long as the block; it adds the statuses of its answers to `statuses`."""
    arguments = ["--greedy", str(port), json.dumps(headers), str(int(polite))]
    work = [sys.executable, "-m", "tests.bench.fairness", *arguments]
    with subprocess.Popen(work, stdout=subprocess.PIPE, text=True) as process:
        time.sleep(START_SECONDS)
        yield
        said, _ = process.communicate()
    for status, count in json.loads(said).items():
        statuses[status] = statuses.get(status, 0) + count


def compare(port: int, modest: Mapping[str, str], greedy: Mapping[str, str]) -> None:
    """Measures the three in turns, because other work on the machine comes and goes, and prints a row for each."""
    kinds = {"alone": None, "keeps to Retry-After": True, "comes back at once": False}
    taken: dict[str, list[float]] = {kind: [] for kind in kinds}
    statuses: dict[str, dict[str, int]] = {kind: {} for kind in kinds}
    measure(port, modest, 2)
    for _ in range(ROUNDS):
        for kind, polite in kinds.items():
            beside = contextlib.nullcontext()
            if polite is not None:
                beside = greedy_vendor(port, greedy, polite, statuses[kind])
            with beside:
                taken[kind] += measure(port, modest, SECONDS)
    print(f"{'':<36} {'requests':>8} {'median':>8} {'p95':>8} {'max':>8} {'ratio':>6}  (ms)")
    for kind, polite in kinds.items():
        name = kind if polite is None else f"beside {GREEDY} greedy, {kind}"
        show(name, taken[kind], taken["alone"], statuses[kind])


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--greedy", nargs=3)
    given = parser.parse_args()
    if given.greedy:
        port, headers, polite = given.greedy
        # Clients are on other machines: these must not take the processors of the service.
        os.nice(19)
        be_greedy(int(port), json.loads(headers), START_SECONDS + SECONDS, polite == "1")
        return
    places.APPLICATIONS = {}
    with open_place(20_000, given.home) as place:
        settings = replace(place.settings, port=find_port(), workers=WORKERS)
        with serve(settings, OURS, place.url) as server:
            modest, greedy = (add_client(place, server, name) for name in ("modest", "greedy"))
            for headers in (modest, greedy):
                # Makes the orderings.
                for _ in range(3):
                    ask(server.port, f"{ROOT}/enrollments?limit={PAGE}&offset={PAGE}", headers)
            compare(server.port, modest, greedy)


if __name__ == "__main__":
    main()
