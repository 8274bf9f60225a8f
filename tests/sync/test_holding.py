"""Runs that are held: when, what remains of them, and how they end."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import Engine, update

from roster_service.cli import main as roster
from roster_service.db.tables import feeds, sync_runs, users
from roster_service.settings import Settings
from sync_scripts.changes import Counts
from sync_scripts.command import make_command
from sync_scripts.exits import Exit
from sync_scripts.families import ONEROSTER
from sync_scripts.holding import Limits, find_excess
from sync_scripts.loading import Options, load

from .bending import column, without_rows, zipped
from .conftest import snapshot, state

LIMITS = Limits(tombstones_percent=10, changes_percent=75, least_records=50)


@pytest.mark.parametrize(
    ("counts", "excess"),
    [
        pytest.param(Counts(tombstoned=10, unchanged=90), [], id="10% vanish"),
        pytest.param(
            Counts(tombstoned=11, unchanged=89), ["11 of 100 users would vanish, more than 10%"], id="more vanish"
        ),
        pytest.param(Counts(changed=75, unchanged=25), [], id="75% change"),
        pytest.param(
            Counts(changed=76, unchanged=24), ["76 of 100 users would change, more than 75%"], id="more change"
        ),
        pytest.param(Counts(added=1000, unchanged=50), [], id="many are new"),
        pytest.param(Counts(revived=1000, unchanged=50), [], id="many come back"),
        pytest.param(Counts(tombstoned=49), [], id="few records"),
        pytest.param(Counts(tombstoned=50), ["50 of 50 users would vanish, more than 10%"], id="just enough records"),
        pytest.param(Counts(added=50), [], id="the first load"),
    ],
)
def test_too_much(counts: Counts, excess: list[str]) -> None:
    assert list(find_excess({"users": counts}, LIMITS)) == excess


@pytest.fixture
def options(tmp_path: Path) -> Options:
    """Limits that the small exports can exceed."""
    return Options(Settings(home=tmp_path / "home", hold_least_records=5))


@pytest.fixture
def held(engine: Engine, springfield: Path, tmp_path: Path, options: Options) -> int:
    """A held run of the feed springfield, whose folder is bent no more; its number."""
    load(engine, "springfield", springfield)
    without_rows("demographics", "spr-student-4")(springfield)
    report = load(engine, "springfield", zipped(springfield, tmp_path / "night.zip"), options=options)
    assert report.outcome == "held"
    assert report.run is not None
    return report.run


Call = Callable[..., Result]


@pytest.fixture
def call(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Runs `roster ARGUMENTS` on the test's database."""
    monkeypatch.setenv("ROSTER_DATABASE_URL", engine.url.render_as_string(hide_password=False))
    monkeypatch.setenv("ROSTER_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ROSTER_HOLD_LEAST_RECORDS", "5")
    return lambda *arguments: CliRunner().invoke(roster, [str(argument) for argument in arguments])


def test_a_held_run_changes_nothing(engine: Engine, held: int, tmp_path: Path) -> None:
    row = snapshot(engine, sync_runs)[held]
    assert (row["outcome"], row["stamp"]) == ("held", None)
    assert row["message"] == "1 of 6 demographics would vanish, more than 10%"
    assert row["counts"]["demographics"] == {
        "added": 0, "changed": 0, "revived": 0, "tombstoned": 1, "unchanged": 5, "refused": 0, "purged": 0,
    }  # fmt: skip
    assert Path(row["kept_export"]).read_bytes() == (tmp_path / "night.zip").read_bytes()
    assert {user["status"] for user in snapshot(engine, users).values()} == {"active"}


def test_approving_applies_the_kept_export(engine: Engine, held: int, call: Call, tmp_path: Path) -> None:
    (tmp_path / "night.zip").write_bytes(b"another export by now")
    kept = Path(snapshot(engine, sync_runs)[held]["kept_export"])
    done = call("sync", "approve", held, "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["counts"]["demographics"]["tombstoned"] == 1
    runs = snapshot(engine, sync_runs)
    assert [run["outcome"] for run in runs.values()] == ["done", "approved", "done"]
    assert not kept.exists()
    again = call("sync", "approve", held)
    assert (again.exit_code, again.stderr) == (1, f"roster: the run {held} is not held; it is approved\n")


def test_discarding_forgets_it(engine: Engine, held: int, call: Call) -> None:
    before = state(engine)
    kept = Path(snapshot(engine, sync_runs)[held]["kept_export"])
    done = call("sync", "discard", held)
    assert (done.exit_code, done.stdout) == (0, f"discarded the run {held} of the feed springfield\n")
    assert snapshot(engine, sync_runs)[held]["outcome"] == "discarded"
    assert not kept.exists()
    assert state(engine) == before
    assert call("sync", "approve", 99).stderr == "roster: there is no run 99\n"


def test_status_shows_what_waits(held: int, call: Call) -> None:
    [first, second] = json.loads(call("sync", "status", "--json").stdout)
    assert (first["run"], first["feed"], first["outcome"]) == (held, "springfield", "held")
    assert second["outcome"] == "done"
    assert "1 of 6 demographics would vanish, more than 10%" in call("sync", "status").stdout


def test_a_newer_run_supersedes_a_held_one(engine: Engine, held: int, springfield: Path, options: Options) -> None:
    kept = Path(snapshot(engine, sync_runs)[held]["kept_export"])
    second = load(engine, "springfield", springfield, options=options)
    runs = snapshot(engine, sync_runs)
    assert (second.outcome, runs[held]["outcome"]) == ("held", "discarded")
    assert runs[held]["message"] == f"superseded by run {second.run}"
    assert not kept.exists()


def test_a_feed_has_limits_of_its_own(engine: Engine, springfield: Path, options: Options) -> None:
    load(engine, "springfield", springfield)
    column("users", "sms", "1")(springfield)
    without_rows("demographics", "spr-student-4")(springfield)
    with engine.begin() as connection:
        connection.execute(update(feeds).values(hold_tombstones_percent=20, hold_changes_percent=0))
    report = load(engine, "springfield", springfield, options=options)
    assert report.message == "15 of 15 users would change, more than 0%"


def test_the_loader_says_that_it_holds(engine: Engine, springfield: Path, call: Call) -> None:
    load(engine, "springfield", springfield)
    without_rows("demographics", "spr-student-4")(springfield)
    arguments = ["--feed", "springfield", str(springfield)]
    done = CliRunner().invoke(make_command(ONEROSTER), arguments)
    assert done.exit_code == Exit.HELD
    assert "held: 1 of 6 demographics would vanish, more than 10%; `roster sync approve 2` applies it" in done.stderr
    forced = CliRunner().invoke(make_command(ONEROSTER), [*arguments, "--allow-mass-delete"])
    assert forced.exit_code == Exit.LOADED
    assert call("sync", "status").exit_code == 0
