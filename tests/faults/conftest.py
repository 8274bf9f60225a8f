"""Two nights that differ in every way, syncs in processes of their own, and a look at what is left of them."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.db import tables
from roster_service.db.engine import make_engine
from roster_service.feeds.group_check import find_wrong_groups
from roster_service.roster.label_check import find_wrong_labels
from sync_scripts.engine.load import load
from tests.sync.conftest import EXPORTS, PARTS, SPRINGFIELD
from tests.sync.export_changes import both, cell_of, column, with_row, without_rows

from .services import Filled, fill

# How often a sync is disturbed, and how often its server; `make check-long` asks for more.
ROUNDS = int(os.environ.get("FAULT_ROUNDS", "3"))
# What differs between two databases with the same roster.
OF_A_RUN = {"date_last_modified", "label_id", "parts_changed", "teachers_changed"}
SERVER_ROUNDS = int(os.environ.get("SERVER_FAULT_ROUNDS", "2"))


def read_roster(engine: sa.Engine) -> dict[str, list[dict[str, Any]]]:
    """Everything but the stamps and the numbers of labels, in the order of keys, out of one snapshot. Every label is
    the right one."""

    def rows(connection: Any, table: sa.Table) -> list[dict[str, Any]]:
        found = connection.execute(sa.select(table).order_by(*table.primary_key))
        return [{key: value for key, value in row._mapping.items() if key not in OF_A_RUN} for row in found]

    with engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
        assert find_wrong_labels(connection) == {}
        assert find_wrong_groups(connection) == {}
        return {table.name: rows(connection, table) for table in (*tables.ROSTER_TABLES, *PARTS)}


def write_load_runs(folder: Path) -> tuple[Path, Path]:
    """The exports of two nights that differ in every way."""
    first, second = (Path(shutil.copytree(EXPORTS / SPRINGFIELD, folder / name)) for name in ("first", "second"))
    both(
        column("users", "sms", "1"),
        without_rows("demographics", "spr-student-4"),
        with_row("orgs", sourcedId="new", name="New", type="school"),
        cell_of("classes", "spr-class-math3-a", "termSourcedIds", "spr-2027-fall"),
    )(second)
    return first, second


@pytest.fixture
def load_runs(tmp_path: Path) -> tuple[Path, Path]:
    """Those of a test."""
    return write_load_runs(tmp_path)


@pytest.fixture
def rosters(make_database: Callable[[], str], load_runs: tuple[Path, Path]) -> list[dict[str, Any]]:
    """The rosters of undisturbed runs: after the first night, and after the second."""
    engine = make_engine(make_database())
    found = []
    for load_run in load_runs:
        load(engine, "feed", load_run)
        found.append(read_roster(engine))
    engine.dispose()
    return found


@pytest.fixture(scope="module")
def filled(make_database: Callable[[], str]) -> Iterator[Filled]:
    """A filled database, which the tests of a module share."""
    url = make_database()
    engine = make_engine(url)
    yield Filled(url, engine, fill(engine))
    engine.dispose()


def start(engine: sa.Engine, path: Path) -> subprocess.Popen[bytes]:
    """Loads an export in a process of its own."""
    command = [sys.executable, "-m", "sync_scripts.load_oneroster", "--feed", "feed", "--json", str(path)]
    url = engine.url.render_as_string(hide_password=False)
    return subprocess.Popen(
        command,
        env={**os.environ, "ROSTER_DATABASE_URL": url, "ROSTER_HOME": str(path.parent / "home")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@contextlib.contextmanager
def watching(engine: sa.Engine, condition: str = "true") -> Iterator[Callable[[], str | None]]:
    """Gives a function that names what the sync's connection is doing; None: there is none for which the condition
    holds."""
    query = sa.text(
        "SELECT query FROM pg_stat_activity "
        f"WHERE application_name LIKE 'roster sync:%' AND datname = current_database() AND {condition}"
    )
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        yield lambda: connection.scalar(query)


def wait_for_a_moment(engine: sa.Engine, process: subprocess.Popen[bytes], moments: range, seed: int) -> None:
    """Lets a number of `moments` of the run go by: changes of what its connection does, however fast the machine is.
    Ends early where the process does."""
    left, last = random.Random(seed).choice(moments), None
    with watching(engine) as watch:
        while process.poll() is None and left:
            now = watch()
            if now is not None and now != last:
                left, last = left - 1, now
