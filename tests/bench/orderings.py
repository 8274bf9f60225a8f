"""`python -m tests.bench.orderings`: pages out of orderings beside the first page, and beside the same page without an
ordering; and making an ordering beside a first page with its count. In this process, in one run.

STUDENTS sets the size of the district (100,000); BENCH_HOME names a folder in which the data are kept for the next run.
Each line is a ratio of two medians that were measured in turn.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from roster_service.db.engine import make_ordering_engine, make_reading_engine
from roster_service.db.round_trip import RoundTrips
from roster_service.db.tables import enrollments, orderings
from roster_service.rostering.endpoints import ENDPOINTS
from roster_service.schemas.versions import V1P1
from roster_service.serving.orderings import Orderings
from roster_service.serving.page import Page
from roster_service.serving.params import Params
from roster_service.serving.plan import make_plan
from roster_service.serving.reader import Reader, ReadPage
from roster_service.serving.request import AuthorizedRequest
from tests.bench.bench_service import seconds_of
from tests.bench.place import Place, open_place

STUDENTS = int(os.environ.get("STUDENTS", "100000"))
ROUNDS = 15
COLD_ROUNDS = 5
MEGABYTES = 1024
PATHS = {endpoint.path: endpoint for endpoint in ENDPOINTS}
SHAPES: Mapping[str, tuple[str, dict[str, str]]] = {
    "plain /users": ("/users", {}),
    "plain /enrollments": ("/enrollments", {}),
    "/users with filter=status='active'": ("/users", {"filter": "status='active'"}),
    "/users with sort=familyName": ("/users", {"sort": "familyName"}),
    "/users with filter and sort": ("/users", {"filter": "familyName~'smi'", "sort": "givenName"}),
    "/schools/{schoolId}/enrollments": ("/schools/{schoolId}/enrollments", {}),
}


class PlainReader(Reader):
    """Finds each page anew, for a vendor who sees whole districts."""

    def read_page(self, request: AuthorizedRequest) -> ReadPage:
        """The page, without an ordering."""
        return self._find_page(request, sees_districts=True)


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
    """One client who sees the whole district, and one worker that answers."""

    def __init__(self, place: Place) -> None:
        self._engine = place.engine
        self._token = place.read_token(place.authorize())
        url = place.make_role_url()
        reading = make_reading_engine(url, statement_seconds=600, pool_size=2, own_sessions=True)
        writing = make_ordering_engine(url, statement_seconds=600)
        self._reader, self._plain_reader = (
            made(RoundTrips(reading), Orderings(writing, MEGABYTES), 60) for made in (Reader, PlainReader)
        )
        sizes = sa.select(enrollments.c.school_id).group_by(enrollments.c.school_id).order_by(sa.func.count().desc())
        with self._engine.connect() as connection:
            self._school = connection.execute(sizes.limit(1)).scalar_one()

    def request(self, path: str, limit: int, offset: int, **more: Any) -> AuthorizedRequest:
        """A page. `more`: `filter`, `sort`."""
        endpoint = PATHS[path]
        params = Params(limit, offset, more.get("filter"), more.get("sort"), descending=False, fields=None)
        path_ids = dict.fromkeys(endpoint.ids, self._school)
        plan = make_plan(params, V1P1.records[endpoint.resource], self._token.rights, endpoint.path_filter, path_ids)
        return AuthorizedRequest(plan, self._token.vendor_id, self._token.client_id, self._token.admission, {})

    def ask(self, path: str, limit: int, offset: int, **more: Any) -> Page:
        """A page, out of its ordering where there is one."""
        return self._reader.read_page(self.request(path, limit, offset, **more)).page

    def ask_plainly(self, path: str, limit: int, offset: int, **more: Any) -> Page:
        """The same page, found without an ordering, with its count."""
        return self._plain_reader.read_page(self.request(path, limit, offset, **more)).page

    def forget(self) -> None:
        """Removes all orderings."""
        with self._engine.begin() as connection:
            connection.execute(sa.text("TRUNCATE orderings, ordering_chunks"))

    def count_bytes(self) -> float:
        """What all orderings take."""
        with self._engine.connect() as connection:
            return float(connection.scalar(sa.select(sa.func.sum(orderings.c.bytes))) or 0)


def compare(
    label: str, most: float | None, ours: Callable[[], object], beside: Callable[[], object], rounds: int = ROUNDS
) -> Row:
    """Both in turn, `rounds` times."""
    pairs = [(seconds_of(ours) * 1000, seconds_of(beside) * 1000) for _ in range(rounds)]
    return Row(label, statistics.median(pair[0] for pair in pairs), statistics.median(pair[1] for pair in pairs), most)


def measure_depth(bench: Bench) -> Iterator[Row]:
    """The page at 95 % depth beside the first page, both out of the ordering."""
    for label, (path, more) in SHAPES.items():
        deep = find_depth(bench, path, more)
        for limit in (100, 1000):
            yield compare(
                f"page at 95 % beside the first, limit={limit}: {label}",
                1.25,
                lambda: bench.ask(path, limit, deep, **more),  # noqa: B023  (run at once)
                lambda: bench.ask(path, limit, 0, **more),  # noqa: B023
            )


def measure_without(bench: Bench) -> Iterator[Row]:
    """The page at 95 % depth beside the same page without an ordering."""
    bench.forget()
    for label, (path, more) in SHAPES.items():
        deep = find_depth(bench, path, more)
        yield compare(
            f"page at 95 % beside the same without an ordering, limit=100: {label}",
            None,
            lambda: bench.ask(path, 100, deep, **more),  # noqa: B023  (run at once)
            lambda: bench.ask_plainly(path, 100, deep, **more),  # noqa: B023
            COLD_ROUNDS,
        )


def find_depth(bench: Bench, path: str, more: Mapping[str, str]) -> int:
    """Where 95 % of a collection lie before; its ordering is made."""
    bench.ask(path, 100, 100, **more)
    return int(bench.ask(path, 1, 0, **more).total * 0.95)


def measure_making(bench: Bench) -> Iterator[Row]:
    """The second page, for which the ordering is made, beside the first page with its count."""
    for path in ("/users", "/enrollments"):
        made, found = [], []
        for _ in range(COLD_ROUNDS):
            bench.forget()
            begin = time.perf_counter()
            bench.ask(path, 100, 100)
            made.append((time.perf_counter() - begin) * 1000)
            found.append(seconds_of(lambda: bench.ask_plainly(path, 100, 0)) * 1000)  # noqa: B023  (run at once)
        label = f"second page, cold, beside the first with its count: {path} ({bench.count_bytes() / 1e6:.1f} MB)"
        yield Row(label, statistics.median(made), statistics.median(found), None)


def run() -> None:
    """Measures, and prints a line for each."""
    home = os.environ.get("BENCH_HOME")
    with open_place(STUDENTS, None if home is None else Path(home)) as place:
        bench = Bench(place)
        sizes = ", ".join(
            f"{place.count(f'SELECT count(*) FROM {name}'):,} {name}" for name in ("users", "enrollments")
        )
        print(f"{sizes}, {os.cpu_count()} cores")
        print(f"{'':<86} {'ours, ms':>10} {'beside':>10} {'ratio':>7} {'target':>7}")
        for rows in (measure_depth(bench), measure_without(bench), measure_making(bench)):
            for row in rows:
                print(row, flush=True)


if __name__ == "__main__":
    run()
