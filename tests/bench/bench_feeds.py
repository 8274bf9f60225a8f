"""`python -m tests.bench.bench_feeds`: loads of many feeds, one feed at a time and two feeds at a time.

FEEDS (200) and STUDENTS (1,000, of each feed) set the size. A vendor is granted every district. Prints, for each number
of jobs, the seconds of the first load, of an unchanged night and of a night with one row in a hundred changed.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import sqlalchemy as sa

from roster_service.accounts import clients, vendor_rights, vendors
from roster_service.auth.scopes import Scope, ScopeName
from roster_service.db.embedded_server import open_embedded
from roster_service.db.engine import make_engine
from roster_service.db.tables import feeds, orgs
from roster_service.roster.upgrades import upgrade
from roster_service.settings import Settings
from sync_scripts.engine.exit_codes import ExitCode
from sync_scripts.engine.nightly_feeds import NightlySync, load_feeds
from tests.actors import TESTER
from tools.districts.drift import Drift
from tools.generate_district import generate

FEEDS = int(os.environ.get("FEEDS", "200"))
STUDENTS = int(os.environ.get("STUDENTS", "1000"))
JOBS = tuple(map(int, os.environ.get("JOBS", "1,2").split(",")))
CORE = Scope("v1p2", ScopeName("roster.readonly"))
EMAIL = "bench@vendors.example"


def make_export(home: Path, number: int) -> None:
    """The export of a made-up district, and that of its next day."""
    for day, drift in {"first": None, "next": Drift(number, adds=0.3, changes=0.5, drops=0.2)}.items():
        generate(
            home / day / f"district-{number:03}",
            students=STUDENTS,
            seed=number,
            version="1.1",
            school_year=2027,
            name=f"District {number}",
            drift=drift,
        )


def load_all(engine: sa.Engine, jobs: int) -> float:
    """Loads every feed; the seconds that it takes."""
    begin = time.monotonic()
    codes = load_feeds(NightlySync(engine, Settings(sync_jobs=jobs, export_age_minutes=0), lambda _event: None))
    assert codes == [ExitCode.LOADED] * FEEDS, codes
    return time.monotonic() - begin


def measure_jobs(home: Path, jobs: int) -> None:
    """Prints the seconds of the loads into a new roster."""
    with open_embedded(home / f"server-{jobs}") as url:
        engine = make_engine(url, jobs=jobs)
        upgrade(engine)
        with engine.begin() as connection:
            vendors.add_vendor(connection, TESTER, EMAIL, "bench")
            clients.add_client(connection, TESTER, EMAIL, "bench", [CORE])
            rows = [
                {"name": path.name, "format": "oneroster", "path": str(path)} for path in (home / "first").iterdir()
            ]
            connection.execute(sa.insert(feeds), rows)
        show("first load", jobs, load_all(engine, jobs))
        with engine.begin() as connection:
            districts = connection.scalars(sa.select(orgs.c.sourced_id).where(orgs.c.type == "district")).all()
            for district in districts:
                vendor_rights.grant(connection, TESTER, EMAIL, district, ())
        show("unchanged night", jobs, load_all(engine, jobs))
        with engine.begin() as connection:
            for feed in connection.scalars(sa.select(feeds.c.name)).all():
                moved = sa.update(feeds).where(feeds.c.name == feed)
                connection.execute(moved.values(path=str(home / "next" / feed)))
        show("night with 1% changed", jobs, load_all(engine, jobs))
        engine.dispose()


def show(label: str, jobs: int, seconds: float) -> None:
    """Prints a figure."""
    print(f"{label:<24} {jobs} {'job ' if jobs == 1 else 'jobs'} {seconds:8.1f} s", flush=True)


def run() -> None:
    """Generates the districts, and measures each number of jobs on a server of its own."""
    with tempfile.TemporaryDirectory(prefix="roster-bench-", ignore_cleanup_errors=True) as name:
        home = Path(name)
        home.chmod(0o755)
        with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
            for made in [pool.submit(make_export, home, number) for number in range(1, FEEDS + 1)]:
                made.result()
        print(f"{FEEDS} feeds of {STUDENTS:,} students, {os.cpu_count()} cores", flush=True)
        for jobs in JOBS:
            measure_jobs(home, jobs)


if __name__ == "__main__":
    run()
