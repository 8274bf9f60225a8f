"""`python -m tests.bench.districts`: pages of a roster of many districts, before and after the sync of one of them and
of all; and the warm-up for few and many clients. In this process, in one run.

DISTRICTS (200) and USERS (of each, 5,000) set the size; BENCH_HOME names a folder in which the roster is kept for the
next run. The roster is written by SQL: districts with ten schools each, and users with a role at one of them.
Each line is a ratio of two medians that were measured in turn. The warm-up is measured in processor
time, so other work on the machine does not count (Linux alone).
"""

from __future__ import annotations

import contextlib
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import psutil
import sqlalchemy as sa

from roster_service.accounts import clients, vendors
from roster_service.auth.credentials.signing_keys import ensure_signing_key
from roster_service.auth.credentials.tokens import AccessToken
from roster_service.auth.scopes import Scope, ScopeName
from roster_service.db.embedded_server import open_embedded
from roster_service.db.engine import make_engine, make_ordering_engine, make_reading_engine
from roster_service.db.roles import DatabaseRole, find_role, make_role_url
from roster_service.db.round_trip import RoundTrips
from roster_service.db.tables import PART_TABLES, ROSTER_TABLES
from roster_service.feeds.feed_states import list_feed_ids
from roster_service.feeds.roster_state import publish
from roster_service.roster.upgrades import upgrade
from roster_service.rostering.endpoints import list_listings
from roster_service.serving.orderings import Orderings
from roster_service.serving.reader import Reader
from roster_service.serving.request import AuthorizedRequest
from roster_service.serving.warm_up import make_orderings
from sync_scripts.applying.writes import make_missing_indexes
from tests.actors import TESTER
from tests.bench.processor_time import read_processor_seconds
from tests.serving.conftest import SECRET_KEY, add_vendor, make_request, make_token
from tests.serving.plain_pages import Question

DISTRICTS = int(os.environ.get("DISTRICTS", "200"))
USERS = int(os.environ.get("USERS", "5000"))
ROUNDS, COLD_ROUNDS, WARM_UP_ROUNDS = 30, 3, 3
# The warm-up is for so many vendors, each of which sees another district; each has so many clients.
WARM_UP_VENDORS, WARM_UP_CLIENTS = min(10, DISTRICTS), (1, 2, 20, 200)
MEGABYTES = 2048
SCOPES = [Scope("v1p2", ScopeName.CORE)]
ENABLE_SOME = """
    UPDATE oauth_clients SET enabled = chosen.enabled FROM (
        SELECT client_id, email LIKE 'warm-up-%'
            AND row_number() OVER (PARTITION BY vendor_id ORDER BY client_id) <= :number AS enabled
        FROM oauth_clients JOIN vendors ON vendors.id = vendor_id
    ) chosen WHERE chosen.client_id = oauth_clients.client_id
"""
FILL = """
    INSERT INTO feeds (name, format) SELECT 'feed ' || d, 'oneroster' FROM generate_series(1, :districts) d;
    INSERT INTO orgs (sourced_id, feed_id, status, date_last_modified, name, type, district_id, parent_id)
        SELECT 'd' || id, id, 'active', now(), 'District ' || id, 'district', 'd' || id, NULL FROM feeds
        UNION ALL SELECT 's' || id || '-' || s, id, 'active', now(), 'School', 'school', 'd' || id, 'd' || id
        FROM feeds, generate_series(0, 9) s;
    INSERT INTO users (sourced_id, feed_id, status, date_last_modified, username, enabled_user, given_name, family_name)
        SELECT md5(id || '-' || u), id, 'active', now(), 'user' || u, true, 'Given' || u % 100, 'Family' || u % 1000
        FROM feeds, generate_series(1, :users) u;
    INSERT INTO user_roles (user_id, ordinal, org_id, role, role_type, origin)
        SELECT md5(id || '-' || u), 0, 's' || id || '-' || u % 10, 'student', 'primary', 'export'
        FROM feeds, generate_series(1, :users) u
"""


def fill(engine: sa.Engine) -> None:
    """Writes the roster, and publishes it."""
    with engine.begin() as connection:
        for statement in FILL.split(";"):
            connection.execute(sa.text(statement), {"districts": DISTRICTS, "users": USERS})
        make_missing_indexes(connection, [*ROSTER_TABLES, *PART_TABLES])
        ensure_signing_key(connection, SECRET_KEY)
        sync(connection, list_feed_ids(connection))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(sa.text("VACUUM ANALYZE"))


def sync(connection: sa.Connection, feed_ids: Sequence[int]) -> None:
    """As a sync does that changes some records of these feeds: it announces a revision."""
    publish(connection, feed_ids, as_of=connection.scalar(sa.select(sa.func.now())))


class Bench:
    """Vendors of one roster, and one worker that answers them."""

    def __init__(self, url: str) -> None:
        self.engine = make_engine(url)
        with self.engine.connect() as connection:
            name = find_role(connection, DatabaseRole.SERVING)
        if name is None:
            raise RuntimeError("the database has no roles")
        serving = make_role_url(url, name, None)
        reading = make_reading_engine(serving, statement_seconds=600, pool_size=2, own_sessions=True)
        self._ordering_engine = make_ordering_engine(serving, statement_seconds=600)
        self._orderings = Orderings(self._ordering_engine, MEGABYTES)
        self._reader = Reader(RoundTrips(reading), self._orderings, 60)
        self._tokens: dict[str, AccessToken] = {}

    def add_vendor(self, name: str, districts: Sequence[str]) -> None:
        """Adds a vendor who sees these districts, unless a kept roster has it."""
        email = f"{name}@vendors.example"
        with self.engine.begin() as connection:
            known = [client for client in clients.list_clients(connection) if client.vendor == email]
            if known:
                self._tokens[name] = make_token(connection, known[0].client_id)
            else:
                self._tokens[name] = add_vendor(connection, name, districts, SCOPES)

    def make_request(self, name: str, offset: int, sort: str | None = None) -> AuthorizedRequest:
        """A page of the ids of 100 users for a vendor."""
        question = Question(path="/users", districts=(), schools=(), school="", sort=sort)
        return make_request(self._tokens[name], question, 100, offset)

    def read(self, name: str, offset: int, sort: str | None = None) -> int:
        """Reads a page; returns the revision. A first page begins a pull, so pages at depth follow one."""
        return self._reader.read_page(self.make_request(name, offset, sort)).state.revision

    def sync(self, feed_ids: Sequence[int]) -> None:
        """Announces a revision of these feeds, and ends all pulls, so that the next page is of that revision."""
        with self.engine.begin() as connection:
            sync(connection, feed_ids)
            connection.execute(sa.text("DELETE FROM pulls"))

    def warm_up(self, name: str) -> None:
        """Makes the orderings of all users, as the nightly sync does for each client."""
        self._orderings.make(self.make_request(name, 0))

    def add_warm_up_vendors(self) -> list[str]:
        """Adds the vendors of the warm-up with all their clients; their e-mails."""
        emails = []
        for number in range(1, WARM_UP_VENDORS + 1):
            emails.append(f"warm-up-{number}@vendors.example")
            with self.engine.begin() as connection:
                add_vendor(connection, f"warm-up-{number}", [f"d{number}"], SCOPES)
                for _ in range(1, max(WARM_UP_CLIENTS)):
                    clients.add_client(connection, TESTER, emails[-1], "bench", SCOPES)
        return emails

    def remove_vendors(self, emails: Iterable[str]) -> None:
        """Removes vendors, so that the next run on a kept roster has the same ones."""
        with self.engine.begin() as connection:
            for email in emails:
                vendors.remove_vendor(connection, TESTER, email)

    def warm_up_all(self, clients_of_each: int) -> float:
        """Makes all orderings of so many clients of each vendor of the warm-up, and of nobody else. Returns the
        milliseconds of processor time."""
        self.forget()
        with self.engine.begin() as connection:
            connection.execute(sa.text(ENABLE_SOME), {"number": clients_of_each})
        begin = self._read_processor_ms()
        made = make_orderings(
            self.engine, self._ordering_engine, list(list_listings()), megabytes=MEGABYTES, seconds=600
        )
        spent = self._read_processor_ms() - begin
        with self.engine.begin() as connection:
            connection.execute(sa.text("UPDATE oauth_clients SET enabled = true"))
        if made.left or not made.kept:
            raise RuntimeError("the warm-up was not whole")
        return spent

    def _read_processor_ms(self) -> float:
        """Of this process and of PostgreSQL."""
        with self.engine.connect() as connection:
            backend = psutil.Process(connection.scalar(sa.text("SELECT pg_backend_pid()")))
        main = backend.parent()
        if main is None:
            raise RuntimeError("the server has ended")
        return 1000 * read_processor_seconds(os.getpid(), main.pid)

    def forget(self) -> None:
        """Removes all orderings."""
        with self.engine.begin() as connection:
            connection.execute(sa.text("TRUNCATE orderings, ordering_chunks, pulls"))


@contextlib.contextmanager
def open_bench(home: Path) -> Iterator[Bench]:
    """A served roster in a folder."""
    with open_embedded(home) as url:
        engine = make_engine(url)
        upgrade(engine)
        with engine.connect() as connection:
            is_filled = bool(list_feed_ids(connection))
        if not is_filled:
            fill(engine)
        engine.dispose()
        yield Bench(url)


def measure(action: Callable[[], object]) -> float:
    """Milliseconds of one call."""
    begin = time.perf_counter()
    action()
    return (time.perf_counter() - begin) * 1000


def show(label: str, ours: Sequence[float], beside: Sequence[float], most: float | None) -> None:
    """Prints a line: both medians, their ratio, and the ratio that is wanted."""
    first, second = statistics.median(ours), statistics.median(beside)
    wanted = "" if most is None else f"{most:7.2f}"
    print(f"{label:<78} {first:10.2f} {second:10.2f} {first / second:7.2f} {wanted}", flush=True)


def run(home: Path) -> None:
    """Measures, and prints a line for each."""
    half = DISTRICTS * USERS // 2
    with open_bench(home) as bench:
        with bench.engine.connect() as connection:
            feed_ids = list_feed_ids(connection)
        bench.add_vendor("state", [f"d{feed_id}" for feed_id in feed_ids])
        bench.add_vendor("district", [f"d{feed_ids[0]}"])
        print(f"{DISTRICTS} districts of {USERS:,} users, {os.cpu_count()} cores")
        print(f"{'page of 100 of /users, milliseconds':<78} {'ours':>10} {'beside':>10} {'ratio':>7} {'target':>7}")
        cold, one, every, sorted_one, making = [], [], [], [], []
        for number in range(COLD_ROUNDS):
            bench.forget()
            cold.append(measure(lambda: bench.read("state", half)))
            bench.sync(feed_ids[number + 1 : number + 2])
            one.append(measure(lambda: bench.read("state", half)))
            bench.sync(feed_ids[number + 1 : number + 2])
            making.append(measure(lambda: bench.warm_up("state")))
            bench.sync(feed_ids)
            every.append(measure(lambda: bench.read("state", half)))
            sorted_one.append(measure(lambda: bench.read("state", half, "familyName")))
        warm = [measure(lambda: bench.read("state", half)) for _ in range(ROUNDS)]
        small = [measure(lambda: bench.read("district", USERS // 2)) for _ in range(ROUNDS)]
        revision = bench.read("district", 0)
        bench.sync(feed_ids[1:2])
        after = [measure(lambda: bench.read("district", USERS // 2)) for _ in range(ROUNDS)]
        if bench.read("district", 0) != revision:
            raise RuntimeError("the sync of another district changed the revision of a vendor who does not see it")
        show("state: deep page, warm, beside that of a vendor of one district", warm, small, None)
        show("state: first deep page after the sync of one district, beside a warm one", one, warm, 3)
        show("state: the same, if the warm-up of that sync has made its ordering", warm, warm, 3)
        show("state: warm-up after the sync of one district, beside a cold ordering", making, cold, None)
        show("state: first deep page after the sync of all, beside a cold ordering", every, cold, 1.2)
        show("state: sorted, after the sync of all, beside a cold ordering", sorted_one, cold, None)
        show("district: page after the sync of another one, beside before", after, small, 1.25)
        show_warm_ups(bench)


def show_warm_ups(bench: Bench) -> None:
    """Measures the warm-up for few and many clients with the same grants, and prints a line for each number."""
    emails = bench.add_warm_up_vendors()
    # The first one compiles the statements.
    bench.warm_up_all(WARM_UP_CLIENTS[0])
    rounds = [[bench.warm_up_all(number) for number in WARM_UP_CLIENTS] for _ in range(WARM_UP_ROUNDS)]
    bench.remove_vendors(emails)
    few, *more = zip(*rounds, strict=True)
    print(f"warm-up for {WARM_UP_VENDORS} vendors of one district each, milliseconds of processor time", flush=True)
    for number, spent in zip(WARM_UP_CLIENTS[1:], more, strict=True):
        show(f"{number} clients of each vendor, beside {WARM_UP_CLIENTS[0]} of each", spent, few, 1.2)


def main() -> None:
    """Runs in BENCH_HOME, or in a folder that is removed."""
    home = os.environ.get("BENCH_HOME")
    with tempfile.TemporaryDirectory(prefix="roster-bench-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        run(Path(folder if home is None else home))


if __name__ == "__main__":
    main()
