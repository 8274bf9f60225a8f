"""`make bench`: the service beside what bounds it, on the same machine, server and data, in one run and one table.

    python -m tests.bench.bench_service [--out bench.json] [--plot bench.png] [--rows WORD]

From the environment: STUDENTS (191,000, which make 388,000 users and 1,400,000 enrollments), SMALL_STUDENTS (20,000,
of the smaller district), ROUNDS (5, of which the medians count), SECONDS (2, of each measurement), BENCH_HOME (a folder
in which the data are kept for the next run).
Contestants take turns, so that a change of the machine's pace meets both.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from urllib.parse import quote

import sqlalchemy as sa

from roster_service.schemas.versions import V1P1
from tests.bench.limits import store_answers
from tests.bench.load import Job, measure_rate, name_generator
from tests.bench.look_ups import measure_look_ups
from tests.bench.place import Place, Server, add_school_account, open_place
from tests.bench.report import Result, draw, show

STUDENTS = int(os.environ.get("STUDENTS", "191000"))
SMALL_STUDENTS = int(os.environ.get("SMALL_STUDENTS", "20000"))
ROUNDS = int(os.environ.get("ROUNDS", "5"))
SECONDS = float(os.environ.get("SECONDS", "2"))
CONNECTIONS = (1, 8)
# A collection that takes longer to read than this many times its target is cut, and has failed.
PATIENCE = 3
WALK_TARGET = 2
FIRST_PAGE_TARGET = 3
SCHOOL_PAGE_TARGET = 1.5
ROOT = V1P1.root
# What is asked: the filter and the sort; and the same as SQL: the table, the condition, the order.
FIRST_PAGES = {
    "users with ~": ("familyName~'smi'", "users", "contains_folded(family_name, 'smi')", "sourced_id"),
    "users with ~, which nobody has": (
        "familyName~'xqxq'",
        "users",
        "contains_folded(family_name, 'xqxq')",
        "sourced_id",
    ),
    "users with =": ("status='active'", "users", "status = 'active'", "sourced_id"),
    "users with <": ("familyName<'C'", "users", "family_name < 'C'", "sourced_id"),
    "users, sorted": ("status='active'&sort=familyName", "users", "status = 'active'", "family_name, sourced_id"),
    "enrollments with =": ("role='teacher'", "enrollments", "role = 'teacher'", "sourced_id"),
}
COLLECTIONS = ("orgs", "academicSessions", "courses", "classes", "users", "enrollments", "demographics")


@dataclasses.dataclass(frozen=True)
class Ask:
    """A request to one of the servers."""

    server: str
    target: str
    headers: dict[str, str]
    status: int = 200

    def job(self, place: Place, connections: int) -> Job:
        """What the load generator is told."""
        return Job(place.servers[self.server].port, self.target, self.headers, connections, SECONDS, self.status)


@dataclasses.dataclass(frozen=True)
class Bench:
    """The place, and what the rows need to know of its data."""

    place: Place
    token: dict[str, str]
    user_ids: Sequence[str]
    enrollments: int

    def ours(self, path: str, **more: str) -> Ask:
        """A request to the service."""
        return Ask("ours", f"{ROOT}{path}", self.token | more)

    def fetch(self, path: str) -> Ask:
        """The first page of a path, asked once, so that what is kept is there."""
        asked = self.ours(path)
        self.place.servers["ours"].fetch(asked.target, asked.headers)
        return asked

    def count(self, path: str) -> int:
        """X-Total-Count of a path."""
        asked = self.ours(path)
        return int(self.place.servers["ours"].fetch(asked.target, asked.headers).headers["X-Total-Count"])


Row = Callable[[Bench], Iterator[Result]]


def compare_rates(what: str, target: float, ours: Ask, limit: Ask, bench: Bench) -> Iterator[Result]:
    """Requests a second of both, at each number of connections."""
    for connections in CONNECTIONS:
        own, other = take_turns(
            lambda: measure_rate(ours.job(bench.place, connections)),  # noqa: B023
            lambda: measure_rate(limit.job(bench.place, connections)),  # noqa: B023
        )
        yield Result(f"{what}, {connections} at once", own, other, "requests/s", own / other, target, at_least=True)


def take_turns(own: Callable[[], float], other: Callable[[], float]) -> tuple[float, float]:
    """The medians of both, measured in turns; the first turn of each warms and does not count."""
    own(), other()
    rounds = [(own(), other()) for _ in range(ROUNDS)]
    return statistics.median(pair[0] for pair in rounds), statistics.median(pair[1] for pair in rounds)


def measure_pages(bench: Bench) -> Iterator[Result]:
    """Pages of users beside *raw*."""
    for limit, target in ((100, 0.55), (1000, 1.0), (10_000, 1.0)):
        raw = Ask("raw", f"/users?limit={limit}", {})
        yield from compare_rates(f"/users?limit={limit}", target, bench.fetch(f"/users?limit={limit}"), raw, bench)


def measure_fields(bench: Bench) -> Iterator[Result]:
    """Pages with some of the fields, which are made from the records, beside *raw*."""
    raw = Ask("raw", "/users?limit=100", {})
    for fields in ("sourcedId,givenName,familyName,email", "sourcedId,role,orgs"):
        path = f"/users?limit=100&fields={fields}"
        yield from compare_rates(path, 0.3, bench.fetch(path), raw, bench)


def measure_single(bench: Bench) -> Iterator[Result]:
    """A record beside *hello*."""
    path = f"/users/{quote(bench.user_ids[len(bench.user_ids) // 2], safe='')}"
    yield from compare_rates("/users/{id}", 0.35, bench.fetch(path), Ask("hello", "/", {}), bench)


def measure_unchanged(bench: Bench) -> Iterator[Result]:
    """An answer that the client has already, beside *hello*."""
    asked = bench.ours("/users?limit=100")
    tag = bench.place.servers["ours"].fetch(asked.target, asked.headers).headers["ETag"]
    known = dataclasses.replace(asked, headers={**asked.headers, "If-None-Match": tag}, status=304)
    yield from compare_rates("304 by If-None-Match", 0.4, known, Ask("hello", "/", {}), bench)


def measure_depth(bench: Bench) -> Iterator[Result]:
    """A page at 95 % depth beside the first one."""
    with bench.place.engine.connect() as connection:
        school = connection.execute(
            sa.text("SELECT school_id FROM enrollments GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 1")
        ).scalar_one()
    shapes = {
        "plain": "/users?limit=100",
        "with a filter": "/users?limit=100&filter=" + quote("status='active'"),
        "with a sort on a name": "/users?limit=100&sort=familyName",
        "nested": f"/schools/{quote(school, safe='')}/enrollments?limit=100",
    }
    for what, path in shapes.items():
        depth = int(bench.count(path) * 0.95)
        first, deep = bench.fetch(path), bench.fetch(f"{path}&offset={depth}")
        own, other = take_turns(
            lambda: 1000 / measure_rate(deep.job(bench.place, 1)),  # noqa: B023
            lambda: 1000 / measure_rate(first.job(bench.place, 1)),  # noqa: B023
        )
        yield Result(f"95 % depth beside the first page, {what}", own, other, "ms", own / other, 1.25, at_least=False)


def measure_walk(bench: Bench) -> Iterator[Result]:
    """The whole collection of enrollments by offset, beside the same of *raw* by key."""
    raw, ours = bench.place.servers["raw"], bench.place.servers["ours"]
    began = time.perf_counter()
    for _ in walk_raw(raw, "enrollments", 1000):
        pass
    other = time.perf_counter() - began
    began = time.perf_counter()
    seen = 0
    for body in walk(ours, bench.token, "enrollments", 1000):
        seen += body.count(b'"class":{')
        if time.perf_counter() - began > PATIENCE * WALK_TARGET * other:
            break
    own = time.perf_counter() - began
    what = f"{seen:,} of {bench.enrollments:,} enrollments at limit=1000"
    cut = seen < bench.enrollments
    yield Result(what, own, other, "s", float("inf") if cut else own / other, WALK_TARGET, at_least=False)


def walk(server: Server, token: dict[str, str], name: str, limit: int) -> Iterator[bytes]:
    """The bodies of all pages, as an unmodified client asks for them: by offset."""
    offset, total = 0, 1
    while offset < total:
        answer = server.fetch(f"{ROOT}/{name}?limit={limit}&offset={offset}", token)
        total = int(answer.headers["X-Total-Count"])
        offset += limit
        yield answer.body


def walk_raw(server: Server, name: str, limit: int) -> Iterator[bytes]:
    """The bodies of all pages of *raw*, each after the last id of the one before."""
    after = ""
    while True:
        body = server.fetch(f"/{name}?limit={limit}&after={quote(after)}", {}).body
        yield body
        found = re.findall(rb'\{"sourcedId":"([^"]*)"', body[-1000:])
        if not found or body.count(b'{"sourcedId":') < limit:
            return
        after = found[-1].decode()


def measure_delta(bench: Bench) -> Iterator[Result]:
    """The first page of a delta that holds 1 % of the rows, beside the same records by key of *raw*."""
    with bench.place.engine.connect() as connection:
        stamp = connection.execute(
            sa.text("SELECT max(date_last_modified) - interval '1 minute' FROM users")
        ).scalar_one()
    wanted = stamp.strftime("%Y-%m-%dT%H:%M:%S.000Z")
    changed = quote(f"dateLastModified>'{wanted}'")
    asked = bench.fetch(f"/users?limit=100&filter={changed}")
    body = json.loads(bench.place.servers["ours"].fetch(asked.target, asked.headers).body)
    ids = ",".join(record["sourcedId"] for record in body["users"])
    raw = Ask("raw", f"/users?ids={quote(ids)}", {})
    own, other = take_turns(
        lambda: 1000 / measure_rate(asked.job(bench.place, 1)),
        lambda: 1000 / measure_rate(raw.job(bench.place, 1)),
    )
    yield Result("dateLastModified>'...', 1 % of the rows, warm", own, other, "ms", own / other, 3, at_least=False)


def measure_first_pages(bench: Bench) -> Iterator[Result]:
    """First pages that were not asked for before, beside the same page, its exact count and all ids in order on the
    plain tables without any visibility; for a vendor of a single school, beside tables that hold that school alone."""
    with bench.place.engine.begin() as connection:
        account = add_school_account(connection)
    token = bench.place.authorize(account)
    yield from compare_first_pages(bench, bench.token, "", FIRST_PAGE_TARGET)
    yield from compare_first_pages(bench, token, "_of_one_school", SCHOOL_PAGE_TARGET)


def compare_first_pages(bench: Bench, token: dict[str, str], suffix: str, target: float) -> Iterator[Result]:
    """The first pages of one vendor. `suffix`: of the names of the plain tables."""
    ours = bench.place.servers["ours"]
    asked_at = time.time_ns()
    with bench.place.engine.connect() as connection:
        for what, (asked, table, condition, order) in FIRST_PAGES.items():
            wanted = f"FROM {table}{suffix} WHERE {condition} AND sourced_id <> :other"
            plain = (
                f"SELECT * {wanted} ORDER BY {order} LIMIT 100",
                f"SELECT count(*) {wanted}",
                f"SELECT array_agg(sourced_id ORDER BY {order}) {wanted}",
            )
            own, other = [], []
            for number in range(ROUNDS + 1):
                # Another text each time, whatever earlier runs asked for: its second clause refuses nobody.
                mark = f"{asked_at + number}"
                filter_text, _, more = asked.partition("&")
                query = "filter=" + quote(f"{filter_text} AND sourcedId!='{mark}'") + f"&{more}"
                path = f"{ROOT}/{table}?limit=100&{query}".rstrip("&")
                own.append(seconds_of(partial(ours.fetch, path, token)))
                began = time.perf_counter()
                for statement in plain:
                    connection.execute(sa.text(statement), {"other": mark}).all()
                other.append(time.perf_counter() - began)
            mine, theirs = (statistics.median(times[1:]) * 1000 for times in (own, other))
            label = f"first page, not asked before: {what}{suffix.replace('_', ' ')}"
            yield Result(label, mine, theirs, "ms", mine / theirs, target, at_least=False)


def seconds_of(work: Callable[[], object]) -> float:
    """How long the work takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def measure_memory(bench: Bench) -> Iterator[Result]:
    """The largest worker, after reading all collections twice at limit=10000."""
    ours = bench.place.servers["ours"]
    for name in COLLECTIONS * 2:
        for _ in walk(ours, bench.token, name, 10_000):
            pass
    largest = max(ours.read_worker_memory()) / 1e6
    yield Result(
        "memory of a worker after all pages at limit=10000", largest, 200, "MB", largest / 200, 1, at_least=False
    )


def measure_small(bench: Bench) -> Iterator[Result]:
    """Nested paths and look-ups, beside a single record and beside a smaller district on a server of its own."""
    home = os.environ.get("BENCH_HOME")
    with open_place(SMALL_STUDENTS, None if home is None else Path(home) / "small") as small:
        make_ready(small)
        yield from measure_look_ups(bench.place, small)


ROWS: dict[str, Row] = {
    "pages": measure_pages,
    "fields": measure_fields,
    "single": measure_single,
    "unchanged": measure_unchanged,
    "depth": measure_depth,
    "delta": measure_delta,
    "first-pages": measure_first_pages,
    "walk": measure_walk,
    "look-ups": measure_small,
    "memory": measure_memory,
}


def make_ready(place: Place) -> None:
    """The end of a night: the orderings of what the clients may ask for."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "sync_scripts.nightly"]
        subprocess.run(command, check=True, env=os.environ | {"ROSTER_DATABASE_URL": place.url, "ROSTER_HOME": folder})
    with place.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(sa.text("VACUUM ANALYZE"))


def describe(place: Place) -> dict[str, object]:
    """The machine, the versions and the sizes."""
    with place.engine.connect() as connection:
        postgres = connection.execute(sa.text("SHOW server_version")).scalar_one()
    tables = ("orgs", "classes", "users", "enrollments", "demographics")
    return {
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "postgresql": postgres,
        "workers": place.settings.workers,
        "load": name_generator(),
        "students": STUDENTS,
        "rounds": ROUNDS,
        "seconds": SECONDS,
        **{name: place.count(f"SELECT count(*) FROM {name}") for name in tables},
    }


def run(rows: Sequence[str]) -> tuple[dict[str, object], list[Result]]:
    """Measures the rows."""
    home = os.environ.get("BENCH_HOME") or None
    with open_place(STUDENTS, None if home is None else Path(home)) as place:
        make_ready(place)
        token = place.authorize()
        stored = {
            name: store_answers(place.url, name, walk(place.servers["ours"], token, name, 10_000))
            for name in ("users", "enrollments")
        }
        bench = Bench(place, token, stored["users"], len(stored["enrollments"]))
        facts = describe(place)
        print(show(facts, []), flush=True)
        results = []
        for row in rows:
            for result in ROWS[row](bench):
                results.append(result)
                print(result.line(), flush=True)
        return facts, results


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("bench.json"))
    parser.add_argument("--plot", type=Path, help="a PNG of the ratios")
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS), help="these rows alone")
    given = parser.parse_args()
    facts, results = run(given.rows)
    rows = [dataclasses.asdict(result) | {"holds": result.holds} for result in results]
    given.out.write_text(json.dumps({"facts": facts, "rows": rows}, indent=2) + "\n")
    if given.plot is not None:
        draw(results, given.plot)


if __name__ == "__main__":
    main()
