"""`python -m tests.bench.walks`: pages out of walks beside the first page, a keyset walk, and bare SQL, in one run.

STUDENTS sets the size of the district (100,000); BENCH_DATABASE_URL names a database that has one already. Each line is
a ratio of two medians that were measured in turn.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, Engine, bindparam, func, select, text, true, update

from roster_service.access.roster_state import read_state
from roster_service.db.embedded import open_embedded
from roster_service.db.engine import make_engine, make_reading_engine, make_walking_engine
from roster_service.db.migrate import upgrade
from roster_service.db.tables import CText, enrollments, orgs, users
from roster_service.db.visibility import Sight, open_roster
from roster_service.query.params import Wish
from roster_service.query.plan import Plan, make_plan
from roster_service.query.run import Page, fetch_page
from roster_service.query.statements import admits, find_driver, order_of, records_of, wanted_by
from roster_service.query.walks import Walks, make_walk
from roster_service.rostering.endpoints import ENDPOINTS
from roster_service.schemas.versions import V1P2
from sync_scripts.generate_district import main as generate
from sync_scripts.loading import load

STUDENTS = int(os.environ.get("STUDENTS", "100000"))
ROUNDS = 15
COLD_ROUNDS = 5
BASE_URL = "http://127.0.0.1:8000/ims/oneroster/rostering/v1p2"
RECENT = "2026-11-20T00:00:00.000Z"
PATHS = {endpoint.path: endpoint for endpoint in ENDPOINTS}
SIGHT = Sight(guardians=True, metadata=frozenset())


@dataclass(frozen=True)
class Row:
    """One line of the table; both times are medians, in milliseconds. `most`: the ratio that is wanted, if any is."""

    label: str
    ours: float
    beside: float
    most: float | None

    def __str__(self) -> str:
        wanted = "" if self.most is None else f"{self.most:7.2f}"
        return f"{self.label:<86} {self.ours:10.2f} {self.beside:10.2f} {self.ours / self.beside:7.2f} {wanted}"


class Bench:
    """One caller who may see the whole district, and one worker that answers."""

    def __init__(self, url: str) -> None:
        self.reading = make_reading_engine(url, role=None, statement_seconds=600, pool_size=2, own_sessions=False)
        self.walking = make_walking_engine(url, role=None, statement_seconds=600)
        self.walks = Walks(self.walking, 1024)
        with self.reading.connect() as connection:
            self.state = read_state(connection)
            districts = connection.scalars(select(orgs.c.sourced_id).where(orgs.c.type == "district"))
            self.districts = list(districts)
            sizes = select(enrollments.c.school_id).group_by(enrollments.c.school_id).order_by(func.count().desc())
            self.school = connection.execute(sizes.limit(1)).scalar_one()

    def plan(self, path: str, limit: int, offset: int, **more: Any) -> Plan:
        """A plan of a page. `more`: `filter`, `sort`."""
        endpoint = PATHS[path]
        wish = Wish(limit, offset, more.get("filter"), more.get("sort"), descending=False, fields=None)
        path_ids = dict.fromkeys(endpoint.ids, self.school)
        return make_plan(wish, V1P2.records[endpoint.resource], SIGHT, endpoint.selection, path_ids)

    def values(self, plan: Plan) -> dict[str, Any]:
        """What its statements are bound to."""
        path_ids = {f"path_{name}": value for name, value in plan.path_ids}
        return {"caller_districts": self.districts, "caller_schools": [], "base_url": BASE_URL, **path_ids}

    def ask(self, path: str, limit: int, offset: int, **more: Any) -> Page:
        """A page, as a request gets it: in a snapshot of its own."""
        plan = self.plan(path, limit, offset, **more)
        with self.reading.connect() as connection:
            opening = open_roster(connection, self.districts, (), SIGHT)
            return fetch_page(
                connection, make_walk(plan, self.values(plan), self.state, opening, everyone=False), self.walks
            )

    def forget(self) -> None:
        """Makes everything cold."""
        self.walks = Walks(self.walking, 1024)
        with self.walking.begin() as connection:
            connection.execute(text("TRUNCATE walks, walk_chunks"))

    def bare(self, plan: Plan, *conditions: ColumnElement[bool]) -> Page:
        """The same first page and its count by two statements: for one who may see everything, unless `conditions`
        say more."""
        outline = plan.outline
        key = outline.view.record.table.c.sourced_id
        wanted = (wanted_by(plan), *conditions)
        ids = select(key).where(*wanted).order_by(*order_of(outline)).limit(plan.limit).correlate(None)
        count = select(func.count()).select_from(outline.view.record.table).where(*wanted)
        with self.reading.connect() as connection:
            texts = connection.scalars(records_of(outline, func.array(ids.scalar_subquery())), self.values(plan)).all()
            return Page(texts, len(texts), connection.execute(count, self.values(plan)).scalar_one())


def measure(work: Callable[[], object]) -> float:
    """The milliseconds that `work` takes."""
    begin = time.perf_counter()
    work()
    return (time.perf_counter() - begin) * 1000


def compare(
    label: str, most: float, ours: Callable[[], object], beside: Callable[[], object], rounds: int = ROUNDS
) -> Row:
    """Both in turn, `rounds` times."""
    pairs = [(measure(ours), measure(beside)) for _ in range(rounds)]
    return Row(label, statistics.median(pair[0] for pair in pairs), statistics.median(pair[1] for pair in pairs), most)


DEEP: Mapping[str, tuple[str, dict[str, str]]] = {
    "plain /users": ("/users", {}),
    "plain /enrollments": ("/enrollments", {}),
    "/users with filter=status='active'": ("/users", {"filter": "status='active'"}),
    "/users with sort=familyName": ("/users", {"sort": "familyName"}),
    "/users with filter and sort": ("/users", {"filter": "familyName~'smi'", "sort": "givenName"}),
    "/schools/{id}/enrollments": ("/schools/{schoolId}/enrollments", {}),
}


def measure_depth(bench: Bench) -> Iterator[Row]:
    """The page at 95 % depth beside the first page, both known."""
    for label, (path, more) in DEEP.items():
        bench.ask(path, 100, 100, **more)
        deep = int(bench.ask(path, 0, 0, **more).total * 0.95)
        for limit in (100, 1000):
            yield compare(
                f"page at 95 % beside the first, limit={limit}: {label}",
                1.25,
                lambda: bench.ask(path, limit, deep, **more),  # noqa: B023  (run at once)
                lambda: bench.ask(path, limit, 0, **more),  # noqa: B023
            )


def walk_all(bench: Bench, path: str, limit: int) -> int:
    """Every page to the end, by offset."""
    found = 0
    while True:
        page = bench.ask(path, limit, found)
        found += page.records
        if found >= page.total:
            return found


def walk_by_key(bench: Bench, path: str, limit: int) -> int:
    """Every page to the end, by the last key, for one who may see everything: the same JSON, and nothing else."""
    plan = bench.plan(path, limit, 0)
    key = plan.outline.view.record.table.c.sourced_id
    ids = select(key).where(key > bindparam("last", type_=CText)).order_by(key).limit(limit).correlate(None)
    page = records_of(plan.outline, func.array(ids.scalar_subquery())).add_columns(key)
    found, last = 0, ""
    while True:
        with bench.reading.connect() as connection:
            rows = connection.execute(page, {**bench.values(plan), "last": last}).all()
        found += len(rows)
        if len(rows) < limit:
            return found
        last = rows[-1][1]


def measure_walk(bench: Bench) -> Row:
    """A whole walk beside one by key."""
    bench.ask("/enrollments", 1000, 1000)
    ours, beside = (lambda: walk_all(bench, "/enrollments", 1000)), (lambda: walk_by_key(bench, "/enrollments", 1000))
    return compare("whole walk of /enrollments at limit=1000 beside a keyset walk", 2.0, ours, beside, rounds=3)


def measure_filters(bench: Bench) -> Iterator[Row]:
    """First pages with a filter beside bare SQL: cold, and once known."""
    for label, wanted, warm_most in (
        ("dateLastModified, 1 % of /users", f"dateLastModified>'{RECENT}'", 3.0),
        ("familyName~'smi' of /users", "familyName~'smi'", 3.0),
    ):
        plan = bench.plan("/users", 100, 0, filter=wanted)

        def ask(wanted: str = wanted) -> Page:
            return bench.ask("/users", 100, 0, filter=wanted)

        colds, bares, limited = [], [], []
        for _ in range(COLD_ROUNDS):
            bench.forget()
            colds.append(measure(ask))
            bares.append(measure(lambda: bench.bare(plan)))  # noqa: B023
            limited.append(measure(lambda: bench.bare(plan, admits(plan.outline, find_driver(plan)))))  # noqa: B023
        cold = statistics.median(colds)
        yield Row(f"first page, cold, beside SQL for all records: {label}", cold, statistics.median(bares), 1.5)
        yield Row(f"first page, cold, beside SQL for this caller: {label}", cold, statistics.median(limited), 1.5)
        ask()
        ask()
        yield compare(f"first page, known: {label}", warm_most, ask, lambda: bench.bare(plan))  # noqa: B023


def measure_making(bench: Bench) -> Iterator[Row]:
    """Making a walk beside a bare count of the same records."""
    for path in ("/users", "/enrollments"):
        times, counts = [], []
        for _ in range(COLD_ROUNDS):
            bench.forget()
            times.append(measure(lambda: bench.ask(path, 100, 100)))  # noqa: B023
            counts.append(measure(lambda: bench.bare(bench.plan(path, 100, 0), true())))  # noqa: B023
        with bench.reading.connect() as connection:
            size = connection.execute(text("SELECT sum(bytes)::float8 FROM walks")).scalar_one()
        label = f"second page, cold, beside a bare page and count: {path} ({size / 1e6:.1f} MB)"
        yield Row(label, statistics.median(times), statistics.median(counts), None)


def make_recent(engine: Engine) -> None:
    """One user in a hundred changed lately."""
    with engine.begin() as connection:
        some = users.c.sourced_id.startswith("0") & (func.abs(func.hashtext(users.c.sourced_id)) % 100 < 16)
        connection.execute(update(users).values(date_last_modified="2026-11-01T00:00Z"))
        connection.execute(update(users).where(some).values(date_last_modified="2026-11-20T12:00Z"))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM ANALYZE"))


def describe(connection: Connection) -> str:
    """The sizes, and the machine."""
    sizes = [connection.execute(select(func.count()).select_from(table)).scalar_one() for table in (users, enrollments)]
    version = connection.execute(text("SHOW server_version")).scalar_one()
    return f"{sizes[0]:,} users, {sizes[1]:,} enrollments, {os.cpu_count()} cores, PostgreSQL {version}"


@contextmanager
def open_district() -> Iterator[str]:
    """The database that is named, else one of its own with a new district."""
    given = os.environ.get("BENCH_DATABASE_URL")
    if given:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="roster-bench-", ignore_cleanup_errors=True) as name:
        home = Path(name)
        home.chmod(0o755)
        folder = home / "export"
        generate(["--out", str(folder), "--students", str(STUDENTS), "--seed", "1"], standalone_mode=False)
        with open_embedded(home / "server") as url:
            engine = make_engine(url)
            upgrade(engine)
            load(engine, "bench", folder)
            engine.dispose()
            yield url


def run() -> None:
    """Measures, and prints a line for each."""
    with open_district() as url:
        engine = make_engine(url)
        make_recent(engine)
        bench = Bench(url)
        with engine.connect() as connection:
            print(describe(connection))
        print(f"{'':<86} {'ours, ms':>10} {'beside':>10} {'ratio':>7} {'target':>7}")
        for rows in (measure_depth(bench), [measure_walk(bench)], measure_filters(bench), measure_making(bench)):
            for row in rows:
                print(row, flush=True)
        bench.reading.dispose()
        bench.walking.dispose()
        engine.dispose()


if __name__ == "__main__":
    run()
