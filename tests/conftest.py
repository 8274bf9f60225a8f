"""What all tests share: a real PostgreSQL, databases on it, and the application over HTTP."""

from __future__ import annotations

import functools
import gc
import hashlib
import importlib
import itertools
import os
import resource
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from argon2 import PasswordHasher
from click.testing import CliRunner
from flask import Flask
from hypothesis import settings

from roster_service.auth.credentials import secrets
from roster_service.db import engine as engine_module
from roster_service.db.engine import make_engine
from roster_service.db.roles import DatabaseRole, make_role_base, name_role
from roster_service.feeds import scripts
from roster_service.settings import Settings
from tests.extent import ASKS_PLACES, EXTENT, Extent
from tests.places import PLACES, list_slow
from tests.postgres.databases import administer, copy_database, drop_databases
from tests.postgres.loaded import keep_loads
from tests.postgres.server import TEMPLATE, make_template, open_server
from tests.postgres.statements import CAPACITY, SharedStatements, share_statements

# All that is collected stays: a search for garbage among it finds none, and takes a quarter of the time.
gc.disable()

# A slow machine is no bug. In CI the same inputs every time: a find there would be nobody's change.
settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "here")

Tally = Callable[[str], None]
TALLY = "tally"
TALLIED = pytest.StashKey[list[str]]()
SIZES = pytest.StashKey[list[int]]()

# The order of the tests, where it is not that of their names: no test may depend on what another one left.
SEED = os.environ.get("SHUFFLE", "")

# The exports of the tests were written just now.
os.environ["ROSTER_EXPORT_AGE_MINUTES"] = "0"

# A background job of a shell ignores SIGINT, and so would all processes that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

HOME = Settings().home
TEST_DATABASE_VARIABLE = "ROSTER_TEST_DATABASE_URL"


@pytest.fixture(scope="session")
def tally(request: pytest.FixtureRequest) -> Tally:
    """Notes how much was tried; the lines stand at the end of the run."""
    return request.config.stash.setdefault(TALLIED, []).append


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Takes over the lines of a process that ran some of the tests."""
    output = getattr(node, "workeroutput", {})
    node.config.stash.setdefault(TALLIED, []).extend(output.get(TALLY, ()))
    node.config.stash.setdefault(SIZES, []).append(output.get("size", 0))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves the tests that are long, by their mark or by `places.txt`, out of a run of the sample, shuffles the others
    with the seed SHUFFLE, and puts those that are marked `first` before all others. pytest then brings those together
    that share a fixture."""
    if SEED:
        shuffle(items, SEED)
    items.sort(key=lambda item: item.get_closest_marker("first") is None)
    if EXTENT is Extent.SAMPLE:
        left_out = [
            item for item in items if item.get_closest_marker("long") or (ASKS_PLACES and item.nodeid in PLACES.long)
        ]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


def shuffle(items: list[pytest.Item], seed: str) -> None:
    """Shuffles the files, and the tests of each file. A file keeps its order whatever happens to others."""

    def draw(name: str) -> bytes:
        return hashlib.blake2b(f"{seed} {name}".encode()).digest()

    items.sort(key=lambda item: (draw(item.nodeid.partition("::")[0]), draw(item.nodeid)))


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Keeps the collected tests and modules, which all stay, out of every later search for garbage: these searches took
    a third of the time of a test that loads an export."""
    gc.collect()
    gc.freeze()
    # What a closed application leaves survives the first search: each fourth is a whole one.
    gc.set_threshold(500_000, 1, 1)
    gc.enable()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hands them over, in such a process."""
    # pytest then searches everything several times for what was lost, which takes 6 s.
    gc.freeze()
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[TALLY] = session.config.stash.get(TALLIED, [])
        output["size"] = _measure_size()


def _measure_size() -> int:
    """The most memory that this process had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Writes the lines, the largest process, and which tests of `make test` take long without a word why."""
    for line in config.stash.get(TALLIED, []):
        terminalreporter.write_line(line)
    if SEED:
        terminalreporter.write_line(f"SHUFFLE={SEED} gave the order of the tests")
    terminalreporter.write_line(
        f"the largest process of the tests had {max(_measure_size(), *config.stash.get(SIZES, [0])):,} MB"
    )
    if EXTENT is Extent.SAMPLE:
        for line in list_slow(terminalreporter.getreports("passed")):
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def server_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A PostgreSQL server to make databases on: ROSTER_TEST_DATABASE_URL, else an embedded one that is thrown away."""
    given = os.environ.get(TEST_DATABASE_VARIABLE)
    if given:
        yield given
        return
    cache: pytest.Cache | None = getattr(request.config, "cache", None)
    with open_server(cache and cache.mkdir("roster-clusters")) as url:
        yield url


@pytest.fixture(scope="session")
def migrated_template(server_url: str) -> Iterator[str]:
    """The name of an empty, migrated database to copy; nothing stays connected to it."""
    if TEST_DATABASE_VARIABLE not in os.environ:
        with keep_loads(server_url, TEMPLATE):
            yield TEMPLATE
        return
    name = f"{TEMPLATE}_{os.getpid()}"
    make_template(server_url, name)
    with keep_loads(server_url, name):
        yield name
    drop_databases(server_url, name)
    # The copies of the template share its roles.
    administer(server_url, *(f"DROP ROLE {name_role(make_role_base(name), role)}" for role in DatabaseRole))


@pytest.fixture(scope="session")
def make_database(server_url: str, migrated_template: str) -> Iterator[Callable[[], str]]:
    """Makes an empty, migrated database and returns its URL; all are dropped at the end."""
    numbers = itertools.count(1)
    made: list[str] = []

    def make() -> str:
        made.append(f"{migrated_template}_{next(numbers)}")
        return copy_database(server_url, migrated_template, made[-1])

    yield make
    drop_databases(server_url, *made)


@pytest.fixture
def database_url(server_url: str, migrated_template: str) -> Iterator[str]:
    """A migrated, empty database of this test's own."""
    name = f"{migrated_template}_own"
    yield copy_database(server_url, migrated_template, name)
    drop_databases(server_url, name)


@pytest.fixture(scope="session", autouse=True)
def production_hasher() -> Iterator[PasswordHasher]:
    """The hasher of the service. In its place the tests have one that does the least work argon2 can do."""
    hasher = secrets._HASHER
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secrets, "_HASHER", PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
        yield hasher


@pytest.fixture(scope="session", autouse=True)
def shared_statements() -> Iterator[None]:
    """Every engine of the service finds what another one has compiled: compiling takes most of the time of a load, and
    tests open thousands of engines."""
    with pytest.MonkeyPatch.context() as patch:
        shared = functools.partial(share_statements, SharedStatements(CAPACITY), engine_module._make_engine)
        patch.setattr(engine_module, "_make_engine", shared)
        yield


@pytest.fixture
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A data folder of the tests for the settings of this process."""
    monkeypatch.setenv("ROSTER_HOME", str(tmp_path_factory.getbasetemp() / "data folder"))


@pytest.fixture(scope="session")
def has_home() -> bool:
    """Whether the checkout has a data folder, which is somebody's own."""
    return HOME.exists()


@pytest.fixture(autouse=True)
def current_folder(has_home: bool) -> Iterator[None]:
    """A test whose settings name no data folder must keep nothing: a copy of an export would stay in the checkout."""
    yield
    assert has_home or not HOME.exists(), f"this test, or one beside it, left the data folder {HOME.absolute()}"


@pytest.fixture(scope="session", autouse=True)
def access_log_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Each application whose settings name no data folder has a folder of its own for the access log: it would adopt
    the rows of another database."""
    named = Settings.access_log_folder.fget
    assert named is not None

    def find(given: Settings) -> Path:
        return tmp_path_factory.mktemp("access-log") if given.home == HOME else named(given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Settings, "access_log_folder", property(find))
        yield


@pytest.fixture
def engine(database_url: str) -> Iterator[sa.Engine]:
    """A writing engine on this test's own database."""
    made = make_engine(database_url)
    yield made
    made.dispose()


@pytest.fixture
def scripts_in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands run the scripts of the sync in this process, which takes a tenth of the time of a process."""

    def run(command: list[str], env: dict[str, str], **_: Any) -> subprocess.CompletedProcess[str]:
        _python, _m, module, *arguments = map(str, command)
        done = CliRunner().invoke(importlib.import_module(module).main, arguments, env=env)
        return subprocess.CompletedProcess(command, done.exit_code, done.stdout, done.stderr)

    monkeypatch.setattr(scripts.subprocess, "run", run)


def close_app(app: Flask) -> None:
    """Closes every connection of an application, once its journal is written."""
    app.extensions["roster_access_log"].close()
    app.extensions["roster_round_trips"].close()
    if app.extensions["roster_standby"] is not None:
        app.extensions["roster_standby"].close()
    for extension in app.extensions.values():
        if isinstance(extension, sa.Engine):
            extension.dispose()
