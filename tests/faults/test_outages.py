"""The database goes away under a running service, in every way that a test can arrange, and comes back.

Meanwhile every interface is asked without a pause. Each answer is the right one, or 503 with the time of the next try;
soon after the return, all are right, by the workers that ran before. The figures stand at the end of the test run.
"""

from __future__ import annotations

import contextlib
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest
import sqlalchemy as sa

from roster_service.db.engine import make_engine
from roster_service.db.postgres_programs import find_programs
from roster_service.db.roles import DatabaseRole, find_role, quote_name
from roster_service.roster.upgrades import upgrade
from tests.conftest import Tally
from tests.docs.pages import read_section
from tests.postgres.databases import administer, url_of

from .services import STUDENTS, Asking, Reply, assert_busy, assert_served, fill, serving
from .test_servers import OwnServer, small_disk

__all__ = ["small_disk"]

# Of the service that is tested, and how long an outage lasts beyond it.
REQUEST_SECONDS, BEYOND_SECONDS = 2, 4
# From the return of the database until every request that begins is answered rightly.
RETURN_SECONDS = 2
# How long is asked after that.
AFTER_SECONDS = 2


class Database:
    """The database of the service: a district is loaded, and a vendor sees it."""

    def __init__(self, folder: Path) -> None:
        self.cluster = folder / "postgres"
        self.server = OwnServer(folder)
        administer(self.server.url, "CREATE DATABASE roster")
        self.url = url_of(self.server.url, "roster")
        self.engine = make_engine(self.url)
        upgrade(self.engine)
        self.credentials = fill(self.engine)
        with self.engine.connect() as connection:
            self.roles = [str(find_role(connection, role)) for role in DatabaseRole]

    @property
    def processes(self) -> list[psutil.Process]:
        """The server, and its own processes."""
        postmaster = psutil.Process(int((self.cluster / "postmaster.pid").read_text().split()[0]))
        return [postmaster, *postmaster.children(recursive=True)]

    def control(self, *arguments: str) -> None:
        """Runs `pg_ctl`."""
        self.engine.dispose()
        done = find_programs(self.cluster).run("pg_ctl", self.cluster, *arguments)
        assert done.returncode == 0, done.stderr

    def start(self) -> None:
        """Starts the server, as `OwnServer` does."""
        self.server.close()
        self.server.start()

    def end_sessions(self) -> None:
        """Ends the sessions of the workers."""
        names = ", ".join(f"'{role}'" for role in self.roles)
        administer(self.url, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename IN ({names})")

    def count_sessions(self) -> int:
        """How many sessions the workers have."""
        sessions = sa.text("SELECT count(*) FROM pg_stat_activity WHERE usename = ANY(:roles)")
        with self.engine.connect() as connection:
            return int(connection.execute(sessions, {"roles": self.roles}).scalar_one())

    def close(self) -> None:
        """Stops the server."""
        self.engine.dispose()
        self.server.close()


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    """A PostgreSQL that these tests alone use."""
    with tempfile.TemporaryDirectory(prefix="roster-fault-", ignore_cleanup_errors=True) as folder:
        # The server runs as a user of its own where the tests run as root.
        Path(folder).chmod(0o755)
        made = Database(Path(folder))
        yield made
        made.close()


@contextmanager
def stopped(database: Database, mode: str) -> Iterator[None]:
    """PostgreSQL is stopped and started."""
    database.control("stop", "--wait", f"--mode={mode}")
    yield
    database.start()


@contextmanager
def ended(database: Database) -> Iterator[None]:
    """Every session of the service is ended, twice."""
    database.end_sessions()
    yield
    database.end_sessions()


@contextmanager
def frozen(database: Database) -> Iterator[None]:
    """No process of PostgreSQL runs, while the system goes on to accept connections for it."""
    suspended = database.processes
    for process in suspended:
        process.suspend()
    try:
        yield
    finally:
        for process in suspended:
            # What was about to end has ended.
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()


@contextmanager
def exhausted(database: Database) -> Iterator[None]:
    """The service gets no connection."""
    limit = [f"ALTER ROLE {quote_name(role)} CONNECTION LIMIT {{}}" for role in database.roles]
    administer(database.url, *(statement.format(0) for statement in limit))
    database.end_sessions()
    try:
        yield
    finally:
        administer(database.url, *(statement.format(-1) for statement in limit))


@contextmanager
def locked(database: Database) -> Iterator[None]:
    """Tables that every interface reads are locked."""
    with database.engine.begin() as connection:
        connection.execute(sa.text("LOCK TABLE users, oauth_clients, api_keys IN ACCESS EXCLUSIVE MODE"))
        yield


@contextmanager
def full(database: Database, disk: Path) -> Iterator[None]:
    """What the workers write lies on a disk that is full."""
    written = ("orderings", "ordering_chunks", "rate_windows", "rate_hits", "usage", "audit")
    administer(database.url, f"CREATE TABLESPACE small LOCATION '{disk}'")
    administer(database.url, *(f"ALTER TABLE {table} SET TABLESPACE small" for table in written))
    ballast = disk / "ballast"
    try:
        with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as out:
            while True:
                out.write(bytes(4096))
        yield
    finally:
        ballast.unlink()
        administer(database.url, *(f"ALTER TABLE {table} SET TABLESPACE pg_default" for table in written))
        administer(database.url, "DROP TABLESPACE small")


OUTAGES: dict[str, Callable[[Database], AbstractContextManager[None]]] = {
    "stopped, fast": lambda database: stopped(database, "fast"),
    "stopped, immediate": lambda database: stopped(database, "immediate"),
    "all sessions ended": ended,
    "frozen": frozen,
    "no connection left": exhausted,
    "tables locked": locked,
}


def is_right(interface: str, reply: Reply) -> bool:
    """Whether a reply is the right one to what `Asking` asks."""
    if reply.status != 200:
        return False
    match interface:
        case "token":
            return bool(reply.json["access_token"])
        case "login":
            return bool(reply.json["token"])
        case "students":
            return len(reply.json["students"]) == STUDENTS
        case _:
            return len(reply.json["users"]) == 2


def hold_out(outage: AbstractContextManager[None], database: Database, folder: Path, tally: Tally, name: str) -> int:
    """Asks a service before, in and after an outage; the number of answers that were 503."""
    more = {"request_seconds": REQUEST_SECONDS}
    with serving(database.url, database.credentials, folder, **more) as service, ExitStack() as until_back:
        assert_served(service)
        workers = service.workers
        with Asking(service) as asking, Asking(service) as another:
            until_back.enter_context(outage)
            time.sleep(REQUEST_SECONDS + BEYOND_SECONDS)
            until_back.close()
            back = time.monotonic()
            time.sleep(RETURN_SECONDS + AFTER_SECONDS)
            asking.wait()
        replies = sorted(asking.replies + another.replies, key=lambda each: each[0])
        refused = [(begun, interface, reply) for begun, interface, reply in replies if not is_right(interface, reply)]
        for _, interface, reply in refused:
            assert reply.status == 503, service.log
            assert_busy(interface, reply)
        late = max([begun - back for begun, _, _ in refused], default=0.0)
        tally(f"{name}: {len(refused)} of {len(replies)} answers were 503, the last one {late:.1f} s after the return")
        assert late <= RETURN_SECONDS
        [most] = re.findall(r"A worker keeps at most (\d+) connections", read_section("docs/run.md", "Connections"))
        assert database.count_sessions() <= int(most) * len(workers)
        assert service.workers == workers
    return len(refused)


@pytest.mark.parametrize("name", OUTAGES)
def test_every_answer_is_right_or_503_and_soon_after_the_return_all_are_right(
    database: Database, tmp_path: Path, tally: Tally, name: str
) -> None:
    refused = hold_out(OUTAGES[name](database), database, tmp_path, tally, f"the database was away ({name})")
    # Sessions that are ended while they are idle are no outage.
    assert refused or name == "all sessions ended"


def test_a_full_disk_refuses_no_reader(database: Database, small_disk: Path, tmp_path: Path, tally: Tally) -> None:
    assert hold_out(full(database, small_disk), database, tmp_path, tally, "the disk was full") == 0
