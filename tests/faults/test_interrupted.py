"""Whatever kills a sync, readers see the old roster or the new one, and a rerun ends as an undisturbed run would."""

from __future__ import annotations

import json
import signal
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from roster_service.cli import main as roster
from roster_service.db import tables
from sync_scripts.engine.exit_codes import ExitCode
from sync_scripts.engine.load import load
from tests.sync.export_changes import column

from .conftest import ROUNDS, read_roster, start, wait_for_a_moment, watching


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_killed_at_any_moment(
    engine: sa.Engine, load_runs: tuple[Path, Path], rosters: list[dict[str, Any]], seed: int
) -> None:
    load(engine, "feed", load_runs[0])
    process = start(engine, load_runs[1])
    wait_for_a_moment(engine, process, range(60), seed)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert read_roster(engine) in rosters
    # The server may still be at the statement of the dead process; the lock is free when it is gone.
    with watching(engine) as watch:
        while watch() is not None:
            pass
    load(engine, "feed", load_runs[1])
    assert read_roster(engine) == rosters[1]


def test_a_killed_run_is_shown_as_interrupted(
    engine: sa.Engine, load_runs: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By whether it still holds the lock of the sync, and not by how long ago it began."""
    monkeypatch.setenv("ROSTER_DATABASE_URL", engine.url.render_as_string(hide_password=False))

    def show() -> tuple[str, str | None]:
        done = CliRunner().invoke(roster, ["sync", "list", "--json"])
        run = json.loads(done.stdout)[0]
        return run["outcome"], run["finished"]

    load(engine, "feed", load_runs[0])
    with engine.connect() as blocker:
        blocker.execute(sa.text("LOCK TABLE users IN ACCESS EXCLUSIVE MODE"))
        process = start(engine, load_runs[1])
        with watching(engine, "wait_event_type = 'Lock'") as waits:
            while waits() is None:
                assert process.poll() is None
        assert show() == ("running", None)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    with watching(engine) as watch:
        while watch() is not None:
            pass
    assert show() == ("interrupted", None)
    report = load(engine, "feed", load_runs[1])
    assert report.outcome == "done"
    with engine.connect() as connection:
        rows = connection.execute(sa.select(tables.sync_runs.c.id, tables.sync_runs.c.outcome).order_by("id")).all()
    assert [tuple(row) for row in rows] == [(1, "done"), (2, "interrupted"), (report.run, "done")]


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_the_connection_is_lost(
    engine: sa.Engine, load_runs: tuple[Path, Path], rosters: list[dict[str, Any]], seed: int
) -> None:
    load(engine, "feed", load_runs[0])
    process = start(engine, load_runs[1])
    wait_for_a_moment(engine, process, range(1, 40), seed)
    with engine.begin() as connection:
        connection.execute(
            sa.text(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name LIKE 'roster sync:%' AND datname = current_database()"
            )
        )
    out, _ = process.communicate()
    assert process.returncode in (ExitCode.LOADED, ExitCode.UNAVAILABLE), out
    # Who loses the connection while it commits does not know whether it has.
    assert read_roster(engine) in (rosters[1:] if process.returncode == ExitCode.LOADED else rosters)
    load(engine, "feed", load_runs[1])
    assert read_roster(engine) == rosters[1]


def test_two_runs_at_once(engine: sa.Engine, load_runs: tuple[Path, Path], rosters: list[dict[str, Any]]) -> None:
    """One of them loads; the other names it, or comes after it and finds nothing to do."""
    load(engine, "feed", load_runs[0])
    processes = [start(engine, load_runs[1]) for _ in range(2)]
    for process in processes:
        process.communicate()
    codes = sorted(process.returncode for process in processes)
    assert codes in ([ExitCode.LOADED, ExitCode.LOCKED], [ExitCode.LOADED, ExitCode.LOADED])
    assert read_roster(engine) == rosters[1]


def test_a_poller_misses_no_change(engine: sa.Engine, load_runs: tuple[Path, Path]) -> None:
    """A consumer that asks, all along, for what is newer than its last `as_of` ends with the roster as it is; also
    when the clock steps back in between."""
    load(engine, "feed", load_runs[0])
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
                    as_of = reader.scalar(sa.select(tables.roster_state.c.as_of))
                    users = tables.users.c
                    for row in reader.execute(sa.select(tables.users).where(users.date_last_modified > since)):
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
                connection.execute(sa.update(tables.roster_state).values(as_of=ahead))
        column("users", "sms", str(number))(load_runs[0])
        load(engine, "feed", load_runs[0])
    done.set()
    poller.join()
    assert failures == []
    with engine.connect() as connection:
        wanted = {row.sourced_id: dict(row._mapping) for row in connection.execute(sa.select(tables.users))}
    assert mirror == wanted


def test_stamps_only_grow(engine: sa.Engine, load_runs: tuple[Path, Path]) -> None:
    """Also where the newest stamp is of the future, as after a clock that stepped back."""
    stamps = [load(engine, "feed", load_runs[0]).stamp]
    with engine.begin() as connection:
        connection.execute(sa.update(tables.roster_state).values(as_of=sa.func.now() + timedelta(days=1)))
    stamps += [load(engine, "feed", load_run).stamp for load_run in (load_runs[1], load_runs[0], load_runs[1])]
    known = [stamp for stamp in stamps if stamp is not None]
    assert len(known) == 4
    assert known == sorted(set(known))
