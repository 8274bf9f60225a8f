"""The night: every feed in turn, whatever happens to the others; then the purge."""

from __future__ import annotations

import configparser
import importlib.util
import json
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg2
import pytest
import sqlalchemy as sa
from click.testing import CliRunner

import sync_scripts
from roster_service.db import tables
from roster_service.feeds.feeds import FORMATS
from roster_service.feeds.run_history import STEPS
from roster_service.feeds.sync_lock import hold_lock
from sync_scripts.applying.org_tree import FeedDistrict, add_district
from sync_scripts.engine.exit_codes import ExitCode
from sync_scripts.nightly import main
from sync_scripts.reading.registry import FAMILIES
from sync_scripts.staging.retained import Retention

from .conftest import SHELBYVILLE, SPRINGFIELD, lend_engine, snapshot
from .export_changes import Bend, cell_of, with_row

ROOT = Path(__file__).parents[2]
LoadRun = Callable[[], tuple[int, list[dict[str, Any]]]]


@pytest.fixture
def load_run(engine: sa.Engine, monkeypatch: pytest.MonkeyPatch) -> LoadRun:
    """Runs a night on the test's database; its exit code, and the lines that it printed."""
    lend_engine(monkeypatch, engine)

    def run() -> tuple[int, list[dict[str, Any]]]:
        done = CliRunner().invoke(main)
        return done.exit_code, [json.loads(line) for line in done.stdout.splitlines()]

    return run


@pytest.fixture
def folders(engine: sa.Engine, copy_export: Callable[[str], Path]) -> dict[str, Path]:
    """Two feeds that remember where their exports lie, and two that are not loaded at night."""
    found = {"springfield": copy_export(SPRINGFIELD), "shelbyville": copy_export(SHELBYVILLE)}
    rows = [{"name": name, "format": "oneroster", "path": str(path), "enabled": True} for name, path in found.items()]
    rows.append({**rows[0], "name": "disabled", "enabled": False})
    rows.append({**rows[0], "name": "without a path", "path": None})
    with engine.begin() as connection:
        connection.execute(sa.insert(tables.feeds), rows)
    return found


def test_every_enabled_feed_is_loaded(engine: sa.Engine, folders: dict[str, Path], load_run: LoadRun) -> None:
    code, lines = load_run()
    assert code == ExitCode.LOADED
    reported = [(line.get("feed"), line.get("step"), line.get("outcome")) for line in lines]
    steps = [[*((feed, step, None) for step in STEPS), (feed, None, "done")] for feed in sorted(folders)]
    nightly = [(None, step, None) for step in ("retention", "access log", "purge", "labels", "warm", "quality")]
    assert reported == [("without a path", None, "no path"), *steps[0], *steps[1], *nightly]
    assert "`roster feed set 'without a path' --path PATH` gives it one" in lines[0]["message"]
    assert len(snapshot(engine, tables.users)) == 15 + 11
    code, lines = load_run()
    assert [line["outcome"] for line in lines if "outcome" in line] == ["no path", "unchanged", "unchanged"]


FAILURES: dict[str, tuple[Bend, ExitCode]] = {
    "a bad row": (cell_of("orgs", "shv-campus", "type", "x"), ExitCode.PARTIAL),
    "a bad export": (with_row("orgs", sourcedId="shv-north"), ExitCode.REFUSED),
    "no export": (lambda folder: folder.rename(folder.with_name("elsewhere")) and None, ExitCode.STALE),
}


@pytest.mark.parametrize(("bend", "wanted"), FAILURES.values(), ids=FAILURES)
def test_one_failure_does_not_stop_the_others(
    engine: sa.Engine, folders: dict[str, Path], load_run: LoadRun, bend: Bend, wanted: ExitCode
) -> None:
    bend(folders["shelbyville"])
    code, lines = load_run()
    assert code == wanted
    assert {line["feed"]: line["exit"] for line in lines if "exit" in line and "feed" in line} == {
        "shelbyville": wanted,
        "springfield": ExitCode.LOADED,
        "without a path": ExitCode.LOADED,
    }
    assert "spr-student-1" in snapshot(engine, tables.users)
    assert [line["step"] for line in lines[-4:]] == ["purge", "labels", "warm", "quality"]


@pytest.mark.usefixtures("folders")
def test_a_crash_ends_the_run_of_one_feed_and_quotes_no_row(
    engine: sa.Engine, load_run: LoadRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = "North Campus"

    def fail(connection: sa.Connection, feed_name: str, retention: Retention) -> FeedDistrict:
        if feed_name == "shelbyville":
            raise ValueError(cell)
        return add_district(connection, feed_name, retention)

    monkeypatch.setattr("sync_scripts.engine.load.add_district", fail)
    code, lines = load_run()
    assert code == ExitCode.FAILED
    ends = {line.get("feed"): line for line in lines if "exit" in line}
    assert ends["shelbyville"] == {"feed": "shelbyville", "outcome": "failed", "message": "ValueError", "exit": 6}
    assert ends["springfield"]["outcome"] == "done"
    assert len(snapshot(engine, tables.users)) == 15
    assert cell not in json.dumps(lines)


@pytest.mark.usefixtures("folders")
def test_a_database_that_goes_away_is_named_by_each_feed_and_step(
    engine: sa.Engine, load_run: LoadRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise psycopg2.OperationalError("connection refused\nIs the server running?")

    def lose(connection: sa.Connection, *_: object) -> None:
        engine.dispose()
        sa.event.listen(engine, "do_connect", refuse)
        connection.execute(sa.text("SELECT pg_terminate_backend(pg_backend_pid())"))

    monkeypatch.setattr("sync_scripts.engine.load.add_district", lose)
    try:
        code, lines = load_run()
    finally:
        sa.event.remove(engine, "do_connect", refuse)
    outcomes = {line.get("feed") or line["step"]: line["outcome"] for line in lines if "outcome" in line}
    assert code == ExitCode.UNAVAILABLE
    assert outcomes.pop("without a path") == "no path"
    assert {"shelbyville", "springfield", "purge", "labels", "delivery"} < outcomes.keys()
    assert set(outcomes.values()) == {"unavailable"}
    assert lines[-1]["message"] == "the database gave up: connection refused"


@pytest.mark.usefixtures("folders")
def test_a_feed_that_cannot_be_prepared_stops_no_other_run(load_run: LoadRun, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ValueError("a row of somebody")

    monkeypatch.setattr("sync_scripts.nightly.warm_up", fail)
    code, lines = load_run()
    assert code == ExitCode.LOADED
    assert (lines[-2]["step"], lines[-2]["message"]) == ("warm", "ValueError")
    assert lines[-1] == {"step": "quality", "counted": {"feeds": 2}, "exit": ExitCode.LOADED}


@pytest.mark.usefixtures("folders")
def test_a_run_that_is_under_way_is_named(engine: sa.Engine, load_run: LoadRun) -> None:
    with engine.connect() as other, hold_lock(other, "springfield"):
        code, lines = load_run()
    assert code == ExitCode.LOCKED
    loaded = [line for line in lines if line.get("outcome") != "no path" and "feed" in line]
    assert all("roster sync: springfield" in line["message"] for line in loaded)


@pytest.mark.usefixtures("folders")
def test_a_format_that_nobody_knows(engine: sa.Engine, load_run: LoadRun) -> None:
    with engine.begin() as connection:
        connection.execute(sa.update(tables.feeds).values(format="papyrus"))
    code, lines = load_run()
    assert (code, lines[1]["message"]) == (
        ExitCode.REFUSED, "the feed shelbyville takes papyrus, which this version does not know",
    )  # fmt: skip


def test_every_script_and_room_of_the_sync_stands_in_a_layer() -> None:
    """A module that is in none may import whatever it likes."""
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg")
    layers = settings["importlinter:contract:steps"]["layers"].replace("|", " ").split()
    assert {f"sync_scripts.{module.name}" for module in pkgutil.iter_modules(sync_scripts.__path__)} == set(layers)


def test_every_family_has_its_script_and_can_be_added() -> None:
    assert set(FAMILIES) == set(FORMATS)
    for name in FAMILIES:
        assert importlib.util.find_spec(f"sync_scripts.load_{name}") is not None
