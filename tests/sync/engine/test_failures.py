"""Loads that fail for a reason that is not the export: their exit codes, and what they say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from roster_service.db.tables import feeds, sync_runs, users
from sync_scripts.engine.exit_codes import ExitCode
from sync_scripts.load_oneroster import main
from tests.extent import every_other
from tests.postgres.loaded import load_first
from tests.sync.conftest import snapshot, state
from tests.sync.export_changes import cell_of

# The cell of a pupil, which a fault may have in its words.
CELL = "Zoë"


@pytest.fixture
def environment(engine: sa.Engine, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The settings that lead to the database of the test, for this process and for others."""
    monkeypatch.setenv("ROSTER_DATABASE_URL", engine.url.render_as_string(hide_password=False))
    return dict(os.environ)


def raise_with_a_cell(*_arguments: Any, **_options: Any) -> None:
    """A mistake of the program, whose words quote a row."""
    raise ValueError(f"cannot read {CELL}")


def stop_by_hand(*_arguments: Any, **_options: Any) -> None:
    """Ctrl-C."""
    raise KeyboardInterrupt


# Where a load breaks off: a function of the program, what it does instead, and how the fault is called.
FAULTS: dict[str, tuple[str, Callable[..., None], str]] = {
    "in a step": ("sync_scripts.engine.load.make_desired_state", raise_with_a_cell, "ValueError"),
    "in the last step": ("sync_scripts.engine.load.publish", raise_with_a_cell, "ValueError"),
    "while COPY reads": ("sync_scripts.staging.line_hashes.LineHasher.hash", raise_with_a_cell, "ValueError"),
    "by hand": ("sync_scripts.engine.load.compare", stop_by_hand, "KeyboardInterrupt"),
}


@pytest.mark.parametrize(("place", "fault", "name"), FAULTS.values(), ids=FAULTS)
@pytest.mark.usefixtures("environment")
def test_a_crash_has_its_own_code_and_quotes_no_cell(
    engine: sa.Engine,
    springfield: Path,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    fault: Callable[..., None],
    name: str,
) -> None:
    load_first(engine, "springfield", springfield)
    before = state(engine)
    cell_of("users", "spr-student-1", "sms", "1")(springfield)
    monkeypatch.setattr(place, fault)
    reported = CliRunner().invoke(main, ["--feed", "springfield", "--json", str(springfield)])
    assert reported.exit_code == ExitCode.FAILED
    assert json.loads(reported.stdout) == {"outcome": "failed", "message": name}
    # The places help whoever mends it.
    assert f"in {fault.__name__}" in reported.stderr
    shown = CliRunner().invoke(main, ["--feed", "springfield", str(springfield)])
    assert shown.exit_code == ExitCode.FAILED
    assert f"failed: {name}; nothing was changed" in shown.stderr
    assert CELL not in reported.output + shown.output
    assert state(engine) == before


@pytest.mark.parametrize(
    ("file", "words"),
    [
        pytest.param("missing/rejects.csv", "No such file or directory", id="in a missing folder"),
        pytest.param(".", "Is a directory", id="a folder"),
    ],
)
@pytest.mark.usefixtures("environment")
def test_a_file_that_cannot_be_opened_is_found_before_the_load(
    engine: sa.Engine, springfield: Path, tmp_path: Path, file: str, words: str
) -> None:
    reported = CliRunner().invoke(main, ["--feed", "springfield", "--rejects", str(tmp_path / file), str(springfield)])
    assert reported.exit_code == ExitCode.REFUSED
    assert "--rejects" in reported.stderr
    assert words in reported.stderr
    assert snapshot(engine, feeds) == snapshot(engine, sync_runs) == snapshot(engine, users) == {}


LOADER = ["sync_scripts.load_oneroster", "--feed", "springfield"]
# Scripts whose output has no room, and which stream that is: their exit code says all the same that they are done.
OUTPUTS: dict[str, tuple[list[str], str]] = {
    "the report": ([*LOADER, "--json"], "stdout"),
    "the steps": (LOADER, "stderr"),
    "the rejects": ([*LOADER, "--rejects", "/dev/full"], "stdin"),
    "the nights": (["sync_scripts.nightly"], "stdout"),
    "the purge": (["sync_scripts.purge"], "stdout"),
}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is a device of Linux")
@pytest.mark.parametrize(("command", "stream"), every_other(OUTPUTS.values()), ids=OUTPUTS)
def test_output_without_room_costs_no_load(
    engine: sa.Engine, springfield: Path, environment: dict[str, str], command: list[str], stream: str
) -> None:
    with engine.begin() as connection:
        connection.execute(sa.insert(feeds).values(name="springfield", format="oneroster", path=str(springfield)))
    is_load = "sync_scripts.purge" not in command
    with Path("/dev/full").open("r+b", buffering=0) as full:
        done = subprocess.run(
            [sys.executable, "-m", *command, *([str(springfield)] if "--feed" in command else [])],
            env=environment,
            check=False,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: full},
        )
    assert done.returncode == ExitCode.LOADED, done.stderr
    assert len(snapshot(engine, users)) == (15 if is_load else 0)
    if "--rejects" in command:
        assert b"/dev/full cannot be written: No space left on device" in done.stderr
