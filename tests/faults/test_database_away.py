"""The service starts, and goes on, without a database that it can use: it answers 503 until there is one."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest
import sqlalchemy as sa

from roster_service.db.engine import make_engine
from roster_service.db.roles import DatabaseRole, find_role, quote_name
from roster_service.roster.upgrades import upgrade
from tests.conditions import PATIENCE_SECONDS, wait_for
from tests.postgres.databases import administer, url_of

from .services import (
    INTERFACES,
    Credentials,
    Service,
    assert_busy,
    assert_served,
    fill,
    serving,
    start,
)
from .test_servers import OwnServer

# The service's user is no superuser: for one, there is always a connection left.
USER = f"roster_test_user_{os.getpid()}"
ALL = ("TABLES", "SEQUENCES", "FUNCTIONS")


@pytest.fixture(scope="module")
def engine(make_database: Callable[[], str]) -> Iterator[sa.Engine]:
    """An administrator's."""
    made = make_engine(make_database())
    grants = [f"GRANT ALL ON ALL {kind} IN SCHEMA public TO {USER}" for kind in ALL]
    describe(made, f"CREATE ROLE {USER} LOGIN PASSWORD 'of tests'", *grants)
    yield made
    describe(made, f"DROP OWNED BY {USER}", f"DROP ROLE {USER}")
    made.dispose()


@pytest.fixture(scope="module")
def credentials(engine: sa.Engine) -> Credentials:
    """Of a vendor who sees the district that is loaded."""
    return fill(engine)


@pytest.fixture
def url(engine: sa.Engine) -> str:
    """The address of the database, for the service's user."""
    own = engine.url.set(drivername="postgresql", username=USER, password="of tests")
    return own.render_as_string(hide_password=False)


def describe(engine: sa.Engine, *statements: str) -> None:
    """What an administrator does."""
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(sa.text(statement))


def list_roles(engine: sa.Engine) -> list[str]:
    """The roles that requests are served as."""
    with engine.connect() as connection:
        return [str(find_role(connection, role)) for role in DatabaseRole]


@contextmanager
def exhausted(engine: sa.Engine) -> Iterator[None]:
    """Others have taken every connection."""
    roles = [USER, *list_roles(engine)]
    # Databases of other tests have the same roles.
    own = "datname = current_database() AND usename = '{}'"
    cut = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {own}"
    describe(engine, *(f"ALTER ROLE {quote_name(role)} CONNECTION LIMIT 0" for role in roles), *map(cut.format, roles))
    try:
        yield
    finally:
        describe(engine, *(f"ALTER ROLE {quote_name(role)} CONNECTION LIMIT -1" for role in roles))


@contextmanager
def locked(engine: sa.Engine) -> Iterator[None]:
    """A migration is under way."""
    with engine.begin() as connection:
        connection.execute(sa.text("LOCK TABLE alembic_version, roster_state IN ACCESS EXCLUSIVE MODE"))
        yield


@contextmanager
def moved(engine: sa.Engine, revision: str, *, generations: int) -> Iterator[None]:
    """The database says that it is at this revision, so many generations later."""
    with engine.begin() as connection:
        known = connection.scalar(sa.text("SELECT version_num FROM alembic_version"))
    move = "UPDATE alembic_version SET version_num = '{}'; UPDATE roster_state SET generation = generation + {}"
    describe(engine, move.format(revision, generations))
    yield
    describe(engine, move.format(known, -generations))


@contextmanager
def without_roles(engine: sa.Engine) -> Iterator[None]:
    """The service may not log in as the roles that serve."""
    roles = list_roles(engine)
    describe(engine, *(f"ALTER ROLE {quote_name(role)} NOLOGIN" for role in roles))
    try:
        yield
    finally:
        describe(engine, *(f"ALTER ROLE {quote_name(role)} LOGIN" for role in roles))


UNUSABLE: dict[str, Callable[[sa.Engine], AbstractContextManager[None]]] = {
    "no connection is left": exhausted,
    "its tables are locked": locked,
    "its tables are of a later generation": lambda engine: moved(engine, "to come", generations=1),
    "its roles may not log in": without_roles,
}


@pytest.mark.shows("Machine and database", "On tables of another generation, the service answers 503.")
@pytest.mark.parametrize("reason", UNUSABLE)
def test_a_service_starts_on_a_database_that_it_cannot_use_and_serves_once_it_can(
    engine: sa.Engine, url: str, credentials: Credentials, tmp_path: Path, reason: str
) -> None:
    with ExitStack() as until_mended:
        until_mended.enter_context(UNUSABLE[reason](engine))
        with serving(url, credentials, tmp_path, workers=1) as service:
            workers = service.workers
            for interface in INTERFACES:
                assert_busy(interface, service.ask(interface))
            until_mended.close()
            wait_for(lambda: service.ask("token").status == 200)
            assert_served(service)
            assert service.workers == workers
            assert service.log.count("are answered 503") == service.log.count("can be used now") == 1


def test_tables_of_a_newer_version_are_served_where_their_generation_is_known(
    engine: sa.Engine, url: str, credentials: Credentials, tmp_path: Path
) -> None:
    with moved(engine, "to come", generations=0), serving(url, credentials, tmp_path, workers=1) as service:
        assert_served(service)


def test_a_service_whose_connections_are_cut_goes_on_once_it_gets_new_ones(
    engine: sa.Engine, url: str, credentials: Credentials, tmp_path: Path
) -> None:
    with serving(url, credentials, tmp_path, workers=1) as service:
        assert_served(service)
        workers = service.workers
        with exhausted(engine):
            for interface in INTERFACES:
                assert_busy(interface, service.ask(interface))
        wait_for(lambda: is_served(service))
        assert service.workers == workers


def is_served(service: Service) -> bool:
    """Whether every interface gives its right answer; of a connection that died, one request has to learn."""
    try:
        assert_served(service)
    except (AssertionError, KeyError):
        return False
    return True


@pytest.fixture
def server() -> Iterator[OwnServer]:
    """A PostgreSQL of this test's own, which it may stop; it has a database `roster`, without tables."""
    with tempfile.TemporaryDirectory(prefix="roster-fault-", ignore_cleanup_errors=True) as folder:
        # The server runs as a user of its own where the tests run as root.
        Path(folder).chmod(0o755)
        made = OwnServer(Path(folder))
        administer(made.url, "CREATE DATABASE roster")
        yield made
        made.close()


def test_a_service_outlives_its_database(server: OwnServer, tmp_path: Path) -> None:
    """Started while it is away, killed in part while it is away again; no worker that starts then ends the service."""
    url = url_of(server.url, "roster")
    engine = make_engine(url)
    upgrade(engine)
    credentials = fill(engine)
    engine.dispose()
    server.close()
    with serving(url, credentials, tmp_path) as service:
        for _ in range(2):
            for interface in INTERFACES:
                assert_busy(interface, service.ask(interface))
            server.start()
            # Each of the workers has to find it.
            wait_for(lambda: all(is_served(service) for _ in range(5)))
            server.kill()
            replace_a_worker(service)
        assert psutil.Process(service.process.pid).is_running()


def replace_a_worker(service: Service) -> None:
    """Kills a worker, and waits until gunicorn has started another one."""
    before = service.workers
    os.kill(min(before), signal.SIGKILL)
    wait_for(lambda: len(service.workers - {min(before)}) == len(before))


@pytest.mark.shows("Machine and database", "A `ROSTER_` name or value that no setting takes stops the start.")
@pytest.mark.parametrize(
    ("address", "reason"),
    [
        pytest.param("mysql://host/name", "the database must be PostgreSQL, not mysql", id="mysql"),
        pytest.param("no address", "the database URL cannot be read", id="no-address"),
        pytest.param(
            "postgresql://roster:pass@word@127.0.0.1/roster",
            "the database URL has two @; in a password, write @ as %40",
            id="two-signs",
        ),
    ],
)
def test_a_wrong_setting_stops_the_start(tmp_path: Path, address: str, reason: str) -> None:
    process, _, log = start(tmp_path, database_url=address)
    process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode != 0
    assert f"roster: {reason}\n" in log.read_text()


def test_a_wrong_address_of_the_standby_stops_the_start(tmp_path: Path, url: str) -> None:
    process, _, log = start(tmp_path, database_url=url, read_database_url="standby")
    process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode != 0
    assert "roster: ROSTER_READ_DATABASE_URL cannot be read\n" in log.read_text()
