"""What all tests share: a real PostgreSQL, databases on it, and the application over HTTP."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from hypothesis import settings
from sqlalchemy import Engine, create_engine, make_url, text

from roster_service.db.embedded_server import open_embedded
from roster_service.db.engine import make_engine
from roster_service.db.roles import Role, make_role_base, name_role
from roster_service.db.upgrades import upgrade

# A slow machine is no bug. In CI the same inputs every time: a find there would be nobody's change.
settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "here")

Tally = Callable[[str], None]
TALLY = "tally"
TALLIED = pytest.StashKey[list[str]]()

TEST_DATABASE_VARIABLE = "ROSTER_TEST_DATABASE_URL"
TEMPLATE = "roster_test_template"


@pytest.fixture(scope="session")
def tally(request: pytest.FixtureRequest) -> Tally:
    """Notes how much was tried; the lines stand at the end of the run."""
    return request.config.stash.setdefault(TALLIED, []).append


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Takes over the lines of a process that ran some of the tests."""
    node.config.stash.setdefault(TALLIED, []).extend(getattr(node, "workeroutput", {}).get(TALLY, ()))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hands them over, in such a process."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[TALLY] = session.config.stash.get(TALLIED, [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Writes the lines."""
    for line in config.stash.get(TALLIED, []):
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def server_url() -> Iterator[str]:
    """A PostgreSQL server to make databases on: ROSTER_TEST_DATABASE_URL, else an embedded one that is thrown away."""
    given = os.environ.get(TEST_DATABASE_VARIABLE)
    if given:
        yield given
        return
    with (
        tempfile.TemporaryDirectory(prefix="roster-test-", ignore_cleanup_errors=True) as folder,
        open_embedded(Path(folder)) as url,
    ):
        # Nothing here has to survive a power cut.
        administer(url, "ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")
        yield url


def administer(server_url: str, *statements: str) -> None:
    """Run statements that cannot stand in a transaction, such as CREATE DATABASE."""
    engine = create_engine(make_url(server_url).set(drivername="postgresql+psycopg2"), isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            for statement in statements:
                connection.execute(text(statement))
    finally:
        engine.dispose()


def url_of(server_url: str, database: str) -> str:
    """The URL of another database on the same server."""
    return make_url(server_url).set(database=database).render_as_string(hide_password=False)


@pytest.fixture(scope="session")
def make_database(server_url: str) -> Iterator[Callable[[], str]]:
    """Makes an empty, migrated database and returns its URL; all are dropped at the end."""
    numbers = itertools.count(1)
    made = [f"{TEMPLATE}_{os.getpid()}"]
    administer(server_url, f"CREATE DATABASE {made[0]}")
    engine = make_engine(url_of(server_url, made[0]))
    upgrade(engine)
    engine.dispose()

    def make() -> str:
        name = f"{made[0]}_{next(numbers)}"
        administer(server_url, f"CREATE DATABASE {name} TEMPLATE {made[0]}")
        made.append(name)
        return url_of(server_url, name)

    yield make
    administer(server_url, *(f"DROP DATABASE {name} WITH (FORCE)" for name in made))
    # The copies of the template share its roles.
    administer(server_url, *(f"DROP ROLE {name_role(make_role_base(made[0]), role)}" for role in Role))


@pytest.fixture
def database_url(make_database: Callable[[], str]) -> str:
    """A migrated, empty database of this test's own."""
    return make_database()


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    """A writing engine on this test's own database."""
    made = make_engine(database_url)
    yield made
    made.dispose()


def close_app(app: Flask) -> None:
    """Closes every connection of an application, once its journal is written."""
    app.extensions["roster_access_log"].close()
    app.extensions["roster_round_trips"].close()
    for extension in app.extensions.values():
        if isinstance(extension, Engine):
            extension.dispose()
