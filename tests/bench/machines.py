"""`python -m tests.bench.machines`: two web machines beside one, and a standby beside none.

Two gunicorns with a worker each, on ports of their own, beside one gunicorn with two workers: requests a second, in
turns. Then one gunicorn that reads from a standby beside one that does not: the processor time of each PostgreSQL for a
request, which says how much of the primary's work the standby takes over. STUDENTS sets the size (20,000), BENCH_HOME
keeps the data, SECONDS and ROUNDS the length.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import sqlalchemy as sa

from roster_service.db.embedded_server import SOCKET, open_embedded
from roster_service.db.postgres_programs import find_programs
from tests.bench.load import Job, measure_rate
from tests.bench.place import OURS, Place, find_port, open_place, serve
from tests.bench.processor_time import find_postmaster, read_processor_seconds

STUDENTS = int(os.environ.get("STUDENTS", "20000"))
SECONDS = float(os.environ.get("SECONDS", "3"))
ROUNDS = int(os.environ.get("ROUNDS", "5"))
CONNECTIONS = 8
ROOT = "/ims/oneroster/v1p1"
# The last page lies at 95 % depth.
TARGETS = {
    "record": f"{ROOT}/users/{{user}}",
    "page of 100": f"{ROOT}/users?limit=100&offset={{deep}}",
    "page of 1,000": f"{ROOT}/enrollments?limit=1000&offset={{deep}}",
    "page of 100, some fields": f"{ROOT}/users?limit=100&offset={{deep}}&fields=sourcedId,role,orgs",
}


@dataclasses.dataclass(frozen=True)
class Contestant:
    """gunicorns that answer together: their ports."""

    name: str
    ports: Sequence[int]

    def measure(self, target: str, headers: dict[str, str]) -> float:
        """Requests a second, over all of them."""
        share = CONNECTIONS // len(self.ports)
        jobs = [Job(port, target, headers, share, SECONDS) for port in self.ports]
        with ThreadPoolExecutor(len(jobs)) as pool:
            return sum(pool.map(measure_rate, jobs))


@contextlib.contextmanager
def open_standby(home: Path) -> Iterator[str]:
    """A standby of the embedded server of `home`; its URL."""
    primary = (home / "postgres").resolve()
    with tempfile.TemporaryDirectory(prefix="roster-standby-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        cluster = Path(folder) / "postgres"
        cluster.mkdir(mode=0o700)
        programs = find_programs(primary)
        programs.change_owner(cluster)
        source = f"--dbname=host={primary} port=5432 user=postgres"
        copied = programs.run("pg_basebackup", cluster, source, "--write-recovery-conf", "--checkpoint=fast")
        if copied.returncode:
            raise RuntimeError(copied.stderr)
        # The socket of the embedded server lies in its cluster.
        (cluster / f"{SOCKET}.lock").unlink()
        with open_embedded(Path(folder)) as url:
            yield url


def list_targets(place: Place) -> dict[str, str]:
    """The targets with ids and offsets of this district."""
    with place.engine.connect() as connection:
        user = connection.exec_driver_sql("SELECT sourced_id FROM users ORDER BY sourced_id LIMIT 1").scalar_one()
    sizes = {name: place.count(f"SELECT count(*) FROM {name}") for name in ("users", "enrollments")}
    return {
        name: target.format(user=user, deep=int(sizes["enrollments" if "enrollments" in target else "users"] * 0.95))
        for name, target in TARGETS.items()
    }


def compare_machines(place: Place) -> None:
    """Prints requests a second of one machine with two workers, and of two with one."""
    with contextlib.ExitStack() as stack:

        def open_machine(workers: int) -> int:
            settings = dataclasses.replace(place.settings, port=find_port(), workers=workers, public_url=PUBLIC_URL)
            return stack.enter_context(serve(settings, OURS, place.url)).port

        one, two = Contestant("one", [open_machine(2)]), Contestant("two", [open_machine(1), open_machine(1)])
        headers = authorize(place, one.ports[0])
        print(f"{'':<28} {'one machine':>12} {'two':>8} {'ratio':>7}   requests a second, medians of {ROUNDS}")
        for name, target in list_targets(place).items():
            rates = [[contestant.measure(target, headers) for contestant in (one, two)] for _ in range(ROUNDS)]
            alone, both = (statistics.median(rate) for rate in zip(*rates, strict=True))
            print(f"{name:<28} {alone:12.0f} {both:8.0f} {both / alone:7.2f}", flush=True)


def compare_standby(place: Place, home: Path) -> None:
    """Prints the processor time of the primary and of the standby for a request."""
    with contextlib.ExitStack() as stack:
        standby_url = stack.enter_context(open_standby(home))
        clusters = [Path(str(sa.make_url(url).query["host"])) for url in (place.url, standby_url)]
        plain, reading = (
            stack.enter_context(serve(settings, OURS, place.url)).port
            for settings in (
                dataclasses.replace(place.settings, port=find_port(), workers=2, public_url=PUBLIC_URL),
                dataclasses.replace(
                    place.settings, port=find_port(), workers=2, public_url=PUBLIC_URL, read_database_url=standby_url
                ),
            )
        )
        headers = authorize(place, plain)
        print(f"{'':<28} {'primary alone':>14} {'primary':>9} {'standby':>9} {'share':>7}   us of processor a request")
        for name, target in list_targets(place).items():
            found: dict[int, list[list[float]]] = {plain: [], reading: []}
            for _ in range(ROUNDS):
                for port in found:
                    before = [read_processor_seconds(find_postmaster(cluster)) for cluster in clusters]
                    number = measure_rate(Job(port, target, headers, CONNECTIONS, SECONDS)) * SECONDS
                    after = [read_processor_seconds(find_postmaster(cluster)) for cluster in clusters]
                    found[port].append([(b - a) / number * 1e6 for a, b in zip(before, after, strict=True)])
            alone = statistics.median(row[0] for row in found[plain])
            primary, standby = (statistics.median(column) for column in zip(*found[reading], strict=True))
            print(f"{name:<28} {alone:14.0f} {primary:9.0f} {standby:9.0f} {primary / alone:7.2f}", flush=True)


PUBLIC_URL = "http://127.0.0.1"


def authorize(place: Place, port: int) -> dict[str, str]:
    """The header with a token that all of them take: they have one public URL."""
    servers = {"ours": dataclasses.replace(place.servers["ours"], port=port)}
    return dataclasses.replace(place, servers=servers).authorize()


def run() -> None:
    """Measures, and prints the tables."""
    kept = os.environ.get("BENCH_HOME")
    with contextlib.ExitStack() as stack:
        home = Path(kept or stack.enter_context(tempfile.TemporaryDirectory(prefix="roster-machines-")))
        place = stack.enter_context(open_place(STUDENTS, home))
        print(f"{STUDENTS:,} students, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        compare_machines(place)
        compare_standby(place, home)


if __name__ == "__main__":
    run()
