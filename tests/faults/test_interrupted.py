"""Whatever kills a sync, readers see the old roster or the new one, and a rerun ends as an undisturbed run would."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, Table, func, select, text, update

from roster_service.db import tables
from roster_service.db.engine import make_engine
from sync_scripts.exits import Exit
from sync_scripts.loading import load
from tests.sync.bending import both, cell_of, column, with_row, without_rows
from tests.sync.conftest import EXPORTS, SPRINGFIELD

# How often each is tried; `make check-long` asks for more.
ROUNDS = int(os.environ.get("FAULT_ROUNDS", "3"))
PARTS = (tables.class_terms, tables.user_roles, tables.user_profiles, tables.user_agents)


def read_roster(engine: Engine) -> dict[str, list[dict[str, Any]]]:
    """Everything but the stamps, in the order of keys, out of one snapshot."""

    def rows(connection: Any, table: Table) -> list[dict[str, Any]]:
        found = connection.execute(select(table).order_by(*table.primary_key))
        return [{key: value for key, value in row._mapping.items() if key != "date_last_modified"} for row in found]

    with engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
        return {table.name: rows(connection, table) for table in (*tables.ROSTER_TABLES, *PARTS)}


@pytest.fixture
def nights(tmp_path: Path) -> tuple[Path, Path]:
    """The exports of two nights that differ in every way."""
    first, second = (Path(shutil.copytree(EXPORTS / SPRINGFIELD, tmp_path / name)) for name in ("first", "second"))
    both(
        column("users", "sms", "1"),
        without_rows("demographics", "spr-student-4"),
        with_row("orgs", sourcedId="new", name="New", type="school"),
        cell_of("classes", "spr-class-math3-a", "termSourcedIds", "spr-2027-fall"),
    )(second)
    return first, second


@pytest.fixture
def rosters(make_database: Callable[[], str], nights: tuple[Path, Path]) -> list[dict[str, Any]]:
    """The rosters of undisturbed runs: after the first night, and after the second."""
    engine = make_engine(make_database())
    found = []
    for night in nights:
        load(engine, "feed", night)
        found.append(read_roster(engine))
    engine.dispose()
    return found


def start(engine: Engine, path: Path) -> subprocess.Popen[bytes]:
    """Loads an export in a process of its own."""
    command = [sys.executable, "-m", "sync_scripts.load_oneroster", "--feed", "feed", "--json", str(path)]
    url = engine.url.render_as_string(hide_password=False)
    return subprocess.Popen(
        command, env={**os.environ, "ROSTER_DATABASE_URL": url}, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


@contextlib.contextmanager
def watching(engine: Engine) -> Iterator[Callable[[], str | None]]:
    """Gives a function that names what the sync's connection is doing; None: there is none."""
    query = text(
        "SELECT query FROM pg_stat_activity "
        "WHERE application_name LIKE 'roster sync:%' AND datname = current_database()"
    )
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        yield lambda: connection.scalar(query)


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_killed_at_any_moment(
    engine: Engine, nights: tuple[Path, Path], rosters: list[dict[str, Any]], seed: int
) -> None:
    load(engine, "feed", nights[0])
    process = start(engine, nights[1])
    # So many changes of what its connection does are let by: a moment of the run, however fast the machine is.
    left, last = random.Random(seed).randrange(60), None
    with watching(engine) as watch:
        while process.poll() is None and left:
            now = watch()
            if now != last:
                left, last = left - 1, now
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert read_roster(engine) in rosters
    # The server may still be at the statement of the dead process; the lock is free when it is gone.
    with watching(engine) as watch:
        while watch() is not None:
            pass
    load(engine, "feed", nights[1])
    assert read_roster(engine) == rosters[1]


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_the_connection_is_lost(
    engine: Engine, nights: tuple[Path, Path], rosters: list[dict[str, Any]], seed: int
) -> None:
    load(engine, "feed", nights[0])
    process = start(engine, nights[1])
    left, last = random.Random(seed).randrange(1, 40), None
    with watching(engine) as watch:
        while process.poll() is None and left:
            now = watch()
            if now is not None and now != last:
                left, last = left - 1, now
    with engine.begin() as connection:
        connection.execute(
            text(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name LIKE 'roster sync:%' AND datname = current_database()"
            )
        )
    out, _ = process.communicate()
    assert process.returncode in (Exit.LOADED, Exit.UNAVAILABLE), out
    # Who loses the connection while it commits does not know whether it has.
    assert read_roster(engine) in (rosters[1:] if process.returncode == Exit.LOADED else rosters)
    load(engine, "feed", nights[1])
    assert read_roster(engine) == rosters[1]


def test_two_runs_at_once(engine: Engine, nights: tuple[Path, Path], rosters: list[dict[str, Any]]) -> None:
    """One of them loads; the other names it, or comes after it and finds nothing to do."""
    load(engine, "feed", nights[0])
    processes = [start(engine, nights[1]) for _ in range(2)]
    for process in processes:
        process.communicate()
    codes = sorted(process.returncode for process in processes)
    assert codes in ([Exit.LOADED, Exit.LOCKED], [Exit.LOADED, Exit.LOADED])
    assert read_roster(engine) == rosters[1]


def test_a_poller_misses_no_change(engine: Engine, nights: tuple[Path, Path]) -> None:
    """A consumer that asks, all along, for what is newer than its last `as_of` ends with the roster as it is; also
    when the clock steps back in between."""
    load(engine, "feed", nights[0])
    mirror: dict[str, Any] = {}
    done = threading.Event()
    failures: list[Exception] = []

    def poll() -> None:
        since = datetime.fromtimestamp(0, UTC)
        with engine.connect().execution_options(isolation_level="REPEATABLE READ") as reader:
            last = False
            while not last:
                last = done.is_set()
                with reader.begin():
                    as_of = reader.scalar(select(tables.roster_state.c.as_of))
                    users = tables.users.c
                    for row in reader.execute(select(tables.users).where(users.date_last_modified > since)):
                        mirror[row.sourced_id] = dict(row._mapping)
                    since = as_of

    def guarded() -> None:
        try:
            poll()
        except Exception as error:  # noqa: BLE001  (raised again where the test stands)
            failures.append(error)

    poller = threading.Thread(target=guarded)
    poller.start()
    for number in range(4 * ROUNDS):
        if number == 2:
            # As if the clock had been a day ahead until now.
            with engine.begin() as connection:
                ahead = tables.roster_state.c.as_of + timedelta(days=1)
                connection.execute(update(tables.roster_state).values(as_of=ahead))
        column("users", "sms", str(number))(nights[0])
        load(engine, "feed", nights[0])
    done.set()
    poller.join()
    assert failures == []
    with engine.connect() as connection:
        wanted = {row.sourced_id: dict(row._mapping) for row in connection.execute(select(tables.users))}
    assert mirror == wanted


def test_stamps_only_grow(engine: Engine, nights: tuple[Path, Path]) -> None:
    """Also where the newest stamp is of the future, as after a clock that stepped back."""
    stamps = [load(engine, "feed", nights[0]).stamp]
    with engine.begin() as connection:
        connection.execute(update(tables.roster_state).values(as_of=func.now() + timedelta(days=1)))
    stamps += [load(engine, "feed", night).stamp for night in (nights[1], nights[0], nights[1])]
    known = [stamp for stamp in stamps if stamp is not None]
    assert len(known) == 4
    assert known == sorted(set(known))
