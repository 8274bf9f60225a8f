"""`make bench-sync`: the sync beside a plain COPY of the same files into bare text tables, in one run.

STUDENTS sets the size (100,000). Prints a line per measurement: seconds, how often the plain COPY fits in, and the
target. Then a line per format, for FORMAT_STUDENTS (40,000) whose families mostly have contacts: the seconds of a
first load, and its microseconds per record beside those of OneRoster. The last line but these is the share of its
requests that a reader keeps while a sync runs.
"""

from __future__ import annotations

import csv
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import psycopg2
import sqlalchemy as sa

from roster_service.accounts import clients, vendor_rights, vendors
from roster_service.auth.scopes import Scope, ScopeName
from roster_service.db.embedded_server import open_embedded
from roster_service.db.engine import make_engine
from roster_service.roster.upgrades import upgrade
from sync_scripts.engine.load import Options, load
from sync_scripts.reading.registry import FAMILIES
from tests.actors import TESTER
from tests.bench.formats import OTHER_FORMATS, read_tables
from tests.postgres.databases import administer, url_of
from tools.generate_district import main as generate

STUDENTS = int(os.environ.get("STUDENTS", "100000"))
FORMAT_STUDENTS = int(os.environ.get("FORMAT_STUDENTS", "40000"))
# Of a record of another format, in records of OneRoster.
MOST_OF_ANOTHER_FORMAT = 1.5
# Generated last names and the like are made of the seed: another one is another district.
SEED, OTHER_SEED = "1", "2"
# About one row in a hundred, in every file of people and enrollments.
NEXT_DAY = ("--next-day", "--adds", "0.3", "--changes", "0.5", "--drops", "0.2")
SECRET_KEY = "of the benchmark, and of nothing else at all"
READING_SECONDS = 10.0
# Of a night with 1% changed, in plain COPYs.
MOST_OF_CHANGED = 3.0 if STUDENTS >= 1_000_000 else 2.0


@dataclass(frozen=True)
class Figure:
    """Seconds of one measurement, and how often the plain COPY may fit in."""

    label: str
    seconds: float
    most: float | None = None


def measure(work: Callable[[], object]) -> float:
    """The seconds that `work` takes."""
    begin = time.monotonic()
    work()
    return time.monotonic() - begin


def copy_plainly(url: str, folder: Path) -> None:
    """COPY of every file into a table of texts without an index: what nothing that keeps the rows can undercut."""
    with psycopg2.connect(url) as connection, connection.cursor() as cursor:
        for path in sorted(folder.glob("*.csv")):
            with path.open(encoding="utf-8", newline="") as lines:
                width = len(next(csv.reader(lines)))
            columns = ", ".join(f"c{number} text" for number in range(width))
            cursor.execute(f"DROP TABLE IF EXISTS plain_{path.stem.lower()}")
            cursor.execute(f"CREATE TABLE plain_{path.stem.lower()} ({columns})")
            with path.open("rb") as stream:
                cursor.copy_expert(f"COPY plain_{path.stem.lower()} FROM STDIN WITH (FORMAT csv, HEADER)", stream)


def make_export(folder: Path, seed: str, *more: str) -> Path:
    """A made-up district; the same seed without `more` is the same district."""
    generate(["--out", str(folder), "--students", str(STUDENTS), "--seed", seed, *more], standalone_mode=False)
    return folder


def apart(work: Callable[..., Path], *arguments: object) -> Path:
    """What `work` returns, done in a process of its own: its memory is not the sync's."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def turn_around(source: Path, target: Path) -> Path:
    """The same export with the rows of every file in the opposite order."""
    target.mkdir()
    for path in source.glob("*.csv"):
        header, *rows = path.read_bytes().splitlines(keepends=True)
        (target / path.name).write_bytes(b"".join((header, *(rows if path.stem == "manifest" else rows[::-1]))))
    return target


def time_loads(engine: sa.Engine, url: str, home: Path) -> list[Figure]:
    """One night after another, and the plain COPY between them."""
    export = apart(make_export, home / "export", SEED)
    next_day = apart(make_export, home / "next", SEED, *NEXT_DAY)
    turned = apart(turn_around, next_day, home / "turned")
    options = Options(allow_mass_delete=True)
    figures = [Figure("plain COPY", min(measure(lambda: copy_plainly(url, export)) for _ in range(3)), None)]
    for label, folder, most in (
        ("first load", export, 9.0),
        ("unchanged night", export, 0.3),
        ("night with 1% changed", next_day, MOST_OF_CHANGED),
        ("the same rows in another order", turned, 2.5),
    ):
        figures.append(Figure(label, measure(lambda f=folder: load(engine, "bench", f, options=options)), most))  # type: ignore[misc]
    return figures


def make_other_formats(home: Path) -> Path:
    """The folder of an export of one district in each format. `home`: of the district."""
    generate(
        ["--out", str(home / "oneroster"), "--students", str(FORMAT_STUDENTS), "--guardians-percent", "60"],
        standalone_mode=False,
    )
    read = read_tables(home / "oneroster")
    for name, other in OTHER_FORMATS.items():
        (home / name).mkdir()
        other.write(read, home / name)
    return home


def time_formats(make_database: Callable[[str], sa.Engine], home: Path) -> Iterator[str]:
    """A line per format: its first load, in an empty database."""
    home.mkdir()
    apart(make_other_formats, home)
    of_oneroster = None
    for name in ("oneroster", *OTHER_FORMATS):
        family = FAMILIES[OTHER_FORMATS[name].family if name in OTHER_FORMATS else name]
        engine = make_database(name.translate(str.maketrans(" .", "__")))
        begin = time.monotonic()
        report = load(engine, "bench", home / name, family=family)
        seconds, records = time.monotonic() - begin, sum(counts.added for counts in report.counts.values())
        engine.dispose()
        each = 1e6 * seconds / records
        of_oneroster = of_oneroster or each
        yield (
            f"{name:<12} {records:10,} records {seconds:8.1f} s {each:8.0f} us a record "
            f"{each / of_oneroster:6.2f}   (at most {MOST_OF_ANOTHER_FORMAT})"
        )


def measure_reading(engine: sa.Engine, url: str, home: Path) -> float:
    """The share of its requests that a reader keeps while another district is loaded."""
    with engine.begin() as connection:
        vendors.add_vendor(connection, TESTER, "bench@vendors.example", "bench")
        district = connection.exec_driver_sql(
            "SELECT sourced_id FROM orgs WHERE type = 'district' LIMIT 1"
        ).scalar_one()
        vendor_rights.grant(connection, TESTER, "bench@vendors.example", district, ())
        scopes = [Scope("v1p2", ScopeName("roster.readonly"))]
        client = clients.add_client(connection, TESTER, "bench@vendors.example", "bench", scopes)
    other = apart(make_export, home / "other", OTHER_SEED, "--name", "Another District")
    command = [sys.executable, "-m", "tests.bench.reader", url, client.client_id, client.client_secret, SECRET_KEY]
    with subprocess.Popen([*command, str(READING_SECONDS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None
        alone = float(reader.stdout.readline())
        reader.stdin.write(b"go\n")
        reader.stdin.flush()
        load(engine, "other", other)
        reader.stdin.close()
        beside = float(reader.stdout.readline())
    return beside / alone


def run() -> None:
    """Generates a district, and measures on a server of its own."""
    with tempfile.TemporaryDirectory(prefix="roster-bench-", ignore_cleanup_errors=True) as name:
        home = Path(name)
        home.chmod(0o755)
        with open_embedded(home / "server") as url:
            engine = make_engine(url)
            upgrade(engine)
            show(time_loads(engine, url, home))
            kept = measure_reading(engine, url, home)
            print(f"requests that a reader keeps during a first load: {kept:.0%}   (at least 70%)")
            engine.dispose()

            def make_database(name: str) -> sa.Engine:
                administer(url, f'CREATE DATABASE "{name}"')
                made = make_engine(url_of(url, name))
                upgrade(made)
                return made

            print(f"{FORMAT_STUDENTS:,} students with contacts")
            for line in time_formats(make_database, home / "formats"):
                print(line, flush=True)


def show(figures: list[Figure]) -> None:
    """Prints the times beside the plain COPY, and the memory that they took."""
    print(f"{STUDENTS:,} students, {os.cpu_count()} cores")
    for it in figures:
        target = "" if it.most is None else f"   (at most {it.most})"
        print(f"{it.label:<32} {it.seconds:8.1f} s {it.seconds / figures[0].seconds:6.2f}{target}")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"largest memory of the process: {memory} MB   (below 150)", flush=True)


if __name__ == "__main__":
    run()
