"""`python -m tests.bench.access_log_days`: the access log of DAYS days (400): how large it is, what a question about it
takes, and what the nightly step takes.

VENDORS vendors (20) read all records of PUPILS pupils (191,000) each night, by the pages of 1,000 of users, enrollments
and demographics, and a few hundred people on each of LOOKED_UP paths, filters and addresses by day. The rows of
responses of the last two days, and of the day whose rows become rows of days, are written as a worker writes them; the
rows of the other days are copies of the latter, with people of their own where they are few. SEED (1) sets the people
that are drawn, BENCH_HOME names a folder for the database, by default a temporary one.
"""

from __future__ import annotations

import io
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import sqlalchemy as sa

from roster_service.access_log.entries import PersonHasher
from roster_service.access_log.reports import AccessLogFilter, read_access_log
from roster_service.db.embedded_server import open_embedded
from roster_service.db.engine import make_engine
from roster_service.db.tables import HASH_BYTES, audit_people
from roster_service.roster.upgrades import upgrade

DAYS = int(os.environ.get("DAYS", "400"))
VENDORS = int(os.environ.get("VENDORS", "20"))
PUPILS = int(os.environ.get("PUPILS", "191000"))
SEED = int(os.environ.get("SEED", "1"))
MEGABYTE = 1_000_000
PAGE, LOOKED_UP, ROUNDS = 1000, 20, 5
HASHER = PersonHasher("a secret key of the benchmark, long enough")
TODAY = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
OLD = 3
# The step, in a process of its own, as the nightly sync has it.
FOLD = """
import re, sys, time
from pathlib import Path
from roster_service.db.engine import make_engine
from sync_scripts.access_log_days import fold_days
started = time.perf_counter()
rows = fold_days(make_engine(sys.argv[1]), seconds=10_000)
memory = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
print(f"{rows:,} rows of responses in {time.perf_counter() - started:.1f} s, {memory:.0f} MB of memory")
"""
COLUMNS = (
    "at, vendor_id, caller, method, path, filter, records, request_id, address, scope, districts, people, entry_id, "
    "parts"
)


def make_ids(dice: random.Random) -> tuple[list[bytes], list[bytes], list[bytes]]:
    """The hashes of the pupils, of all people, and of the people of the enrollments, in the order of the pages."""

    def hash_all(kind: str, count: int) -> list[bytes]:
        return [HASHER.hash_id(f"{dice.getrandbits(128):032x}-{kind}") for _ in range(count)]

    pupils, guardians, teachers = hash_all("p", PUPILS), hash_all("g", PUPILS), hash_all("t", PUPILS // 13)
    users = [*pupils, *guardians, *teachers]
    dice.shuffle(users)
    enrolled = [*pupils * 7, *teachers * 4]
    dice.shuffle(enrolled)
    return pupils, users, enrolled


def list_pages(pulls: Mapping[str, Sequence[bytes]], day: datetime) -> Iterator[tuple[str, datetime, Sequence[bytes]]]:
    """(path, instant, hashes) of each page of a pull."""
    number = 0
    for path, hashes in pulls.items():
        for start in range(0, len(hashes), PAGE):
            yield path, day + timedelta(milliseconds=500 * number), hashes[start : start + PAGE]
            number += 1


def write_pull(connection: sa.Connection, pulls: Mapping[str, Sequence[bytes]], day: datetime) -> None:
    """Writes the pages of one vendor, and those of the others after it."""
    lines = io.StringIO()
    for path, at, hashes in list_pages(pulls, day):
        people = (HASHER.check + b"".join(dict.fromkeys(hashes))).hex()
        row = (at.isoformat(), "1", "client-1", "GET", path, "\\N", str(len(hashes)), f"{day:%Y%m%d}-{at:%H%M%S%f}")
        lines.write(
            "\t".join((*row, "192.0.2.1", "v1p2/roster.readonly", "{district}", f"\\\\x{people}", "\\N", "0")) + "\n"
        )
    lines.seek(0)
    driver = connection.connection.driver_connection
    with driver.cursor() as cursor:
        cursor.copy_expert(f"COPY audit ({COLUMNS}) FROM stdin", lines)
    others = COLUMNS.replace("vendor_id", "vendor").replace("entry_id", "gen_random_uuid()")
    which = {"day": day, "next": day + timedelta(days=1)}
    of_first = "vendor_id = 1 AND at >= :day AND at < :next"
    copies = f"INSERT INTO audit ({COLUMNS}) SELECT {others} FROM audit, generate_series(2, {VENDORS}) AS vendor"
    connection.execute(sa.text(f"UPDATE audit SET entry_id = gen_random_uuid() WHERE {of_first}"), which)
    connection.execute(sa.text(f"{copies} WHERE {of_first}"), which)


def copy_days(connection: sa.Connection) -> None:
    """Writes the rows of the other days: whole pulls, and people that were looked up."""
    copied = (
        "vendor_id, caller, method, path, filter, address, scope, districts, hash_check, request_id, last_request_id, "
        "answers, records, entries, people, people_bits, parts"
    )
    shifted = "at - number * interval '1 day', last_at - number * interval '1 day'"
    pulls = f"INSERT INTO audit_days (at, last_at, {copied}) SELECT {shifted}, {copied} FROM audit_days"
    connection.execute(sa.text(f"{pulls}, generate_series(1, {DAYS - OLD}) AS number"))
    connection.execute(sa.text(f"SELECT setseed({SEED / 1000})"))
    most = connection.scalar(sa.select(sa.func.max(audit_people.c.number)))
    connection.execute(
        sa.text(f"""
            INSERT INTO audit_days (at, last_at, {copied})
            SELECT (:day - number * interval '1 day') + kind * interval '1 minute', :day - number * interval '1 day'
                + interval '1 day' - interval '1 second', vendor, 'client-1', 'GET', '/path/{{sourcedId}}-' || kind % 5,
                NULL, '192.0.2.' || kind, 'v1p2/roster.readonly', '{{district}}', :check, 'r', 'r', 300, 300,
                decode(repeat(md5(random()::text), 300), 'hex'),
                ARRAY(SELECT 1 + floor(random() * {most})::integer FROM generate_series(1, 300 + 0 * kind) ORDER BY 1),
                NULL, 0
            FROM generate_series(0, {DAYS - OLD}) AS number, generate_series(1, {VENDORS}) AS vendor,
                generate_series(1, {LOOKED_UP}) AS kind
        """),
        {"day": TODAY - timedelta(days=OLD), "check": HASHER.check},
    )


def ask(engine: sa.Engine, name: str, **wanted: object) -> None:
    """Prints what a question takes."""
    times = []
    for _ in range(ROUNDS):
        with engine.connect() as connection:
            started = time.perf_counter()
            found = len(read_access_log(connection, AccessLogFilter(**wanted)))  # type: ignore[arg-type]
            times.append(time.perf_counter() - started)
    print(f"{name}: {found:,} rows; first {times[0]:.2f} s, then {min(times[1:]):.2f} s", flush=True)


def show_sizes(connection: sa.Connection) -> None:
    """Prints the bytes of each table with its indexes."""
    for table in ("audit", "audit_days", "audit_people"):
        count, size = connection.execute(
            sa.text(f"SELECT count(*), pg_total_relation_size('{table}') FROM {table}")
        ).one()
        print(f"{table}: {count:,} rows, {size / MEGABYTE:,.0f} MB", flush=True)


def measure(home: Path) -> None:
    """Fills the log, and prints its figures."""
    dice = random.Random(SEED)
    pupils, users, enrolled = make_ids(dice)
    pulls = {"/users": users, "/enrollments": enrolled, "/demographics": pupils}
    with open_embedded(home) as url:
        engine = make_engine(url)
        upgrade(engine)
        with engine.begin() as connection:
            write_pull(connection, pulls, TODAY - timedelta(days=OLD))
        with engine.connect() as connection:
            show_sizes(connection)
        for name in ("the first night", "a night without a page"):
            done = subprocess.run([sys.executable, "-c", FOLD, url], capture_output=True, text=True, check=True)
            print(f"{name}: {done.stdout.strip()}", flush=True)
        with engine.begin() as connection:
            write_pull(connection, pulls, TODAY - timedelta(days=OLD - 1))
        done = subprocess.run([sys.executable, "-c", FOLD, url], capture_output=True, text=True, check=True)
        print(f"a later night: {done.stdout.strip()}", flush=True)
        with engine.begin() as connection:
            connection.execute(
                sa.text("DELETE FROM audit_days WHERE at >= :day"), {"day": TODAY - timedelta(days=OLD - 1)}
            )
            copy_days(connection)
            for days in (1, 0):
                write_pull(connection, pulls, TODAY - timedelta(days=days))
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("VACUUM ANALYZE")
            show_sizes(connection)
        engine.dispose()
    # With nothing in the memory of the server.
    with open_embedded(home) as url:
        engine = make_engine(url)
        ask(engine, "everything about a person", person=pupils[0])
        ask(engine, "everything about a person who was not shown", person=bytes(HASH_BYTES))
        ask(engine, "a vendor on the last days", vendor_id=7, since=TODAY - timedelta(days=OLD))
        ask(
            engine,
            "a vendor and a person on the last days",
            vendor_id=7,
            since=TODAY - timedelta(days=OLD),
            person=pupils[0],
        )
        with engine.connect() as connection:
            started = time.perf_counter()
            read_access_log(connection, AccessLogFilter(), (0, 51))
            print(f"the newest 50 rows: {time.perf_counter() - started:.2f} s", flush=True)
        engine.dispose()


if __name__ == "__main__":
    if "BENCH_HOME" in os.environ:
        measure(Path(os.environ["BENCH_HOME"]))
    else:
        with tempfile.TemporaryDirectory(prefix="roster-bench-", ignore_cleanup_errors=True) as made:
            Path(made).chmod(0o755)
            measure(Path(made))
