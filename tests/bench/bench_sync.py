"""`make bench-sync`: the sync beside a plain COPY of the same files into bare text tables, in one run.

STUDENTS sets the size (100,000). Prints a line per measurement: seconds, and how often the plain COPY fits in.
"""

from __future__ import annotations

import csv
import os
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psycopg2

from roster_service.db.embedded import open_embedded
from roster_service.db.engine import make_engine
from roster_service.db.migrate import upgrade
from sync_scripts.generate_district import main as generate
from sync_scripts.loading import load

STUDENTS = int(os.environ.get("STUDENTS", "100000"))


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
            cursor.execute(f"CREATE TABLE plain_{path.stem.lower()} ({columns})")
            with path.open("rb") as stream:
                cursor.copy_expert(f"COPY plain_{path.stem.lower()} FROM STDIN WITH (FORMAT csv, HEADER)", stream)


def run() -> None:
    """Generates a district, and measures on a server of its own."""
    with tempfile.TemporaryDirectory(prefix="roster-bench-", ignore_cleanup_errors=True) as name:
        home = Path(name)
        home.chmod(0o755)
        folder = home / "export"
        generate(["--out", str(folder), "--students", str(STUDENTS), "--seed", "1"], standalone_mode=False)
        with open_embedded(home / "server") as url:
            engine = make_engine(url)
            upgrade(engine)
            plain = measure(lambda: copy_plainly(url, folder))
            figures = {
                "plain COPY": plain,
                "first load": measure(lambda: load(engine, "bench", folder)),
                "unchanged night": measure(lambda: load(engine, "bench", folder)),
            }
            engine.dispose()
    print(f"{STUDENTS:,} students")
    for label, seconds in figures.items():
        print(f"{label:<16} {seconds:8.1f} s {seconds / plain:6.2f}")
    print(f"largest memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB")


if __name__ == "__main__":
    run()
