"""Commands in a folder without a database: only those that are meant to make one do."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from sync_scripts.engine.exit_codes import ExitCode
from tests.cli.conftest import make_environment
from tests.extent import cases, long

ROSTER = ["-c", "from roster_service.cli import main; main()"]
# Each with its exit code.
REFUSED: dict[str, tuple[list[str], int]] = {
    "feed list": ([*ROSTER, "feed", "list"], 1),
    "sync list": ([*ROSTER, "sync", "list"], 1),
    "vendor add": ([*ROSTER, "vendor", "add", "reading@example.com", "--name", "Reading App"], 1),
    "client list": ([*ROSTER, "client", "list", "--json"], 1),
    "keys rotate": ([*ROSTER, "keys", "rotate"], 1),
    "usage": ([*ROSTER, "usage"], 1),
    "a loader": (["-m", "sync_scripts.load_oneroster", "--feed", "springfield", "export.zip"], ExitCode.UNAVAILABLE),
    "the nightly sync": (["-m", "sync_scripts.nightly"], ExitCode.UNAVAILABLE),
    "the purge": (["-m", "sync_scripts.purge"], ExitCode.UNAVAILABLE),
}


def run_in(folder: Path, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Runs Python in a folder, with no setting of the service."""
    environment = {**os.environ, **make_environment()}
    return subprocess.run(
        [sys.executable, *arguments],
        env={name: value for name, value in environment.items() if value is not None},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("refused", cases(REFUSED, quick=["feed list", "a loader"]))
def test_a_command_in_another_folder_makes_no_database(tmp_path: Path, refused: tuple[list[str], int]) -> None:
    arguments, code = refused
    done = run_in(tmp_path, arguments)
    assert done.returncode == code
    reported = done.stdout + done.stderr
    assert f"there is no database in {tmp_path / 'var' / 'postgres'}" in reported
    assert "ROSTER_HOME" in reported
    assert list(tmp_path.iterdir()) == []


@long
def test_an_upgrade_in_another_folder_makes_a_database_and_says_where(tmp_path: Path) -> None:
    upgrade = [*ROSTER, "db", "upgrade"]
    done = run_in(tmp_path, upgrade)
    cluster = tmp_path / "var" / "postgres"
    assert (done.returncode, done.stderr) == (0, f"Making a database in {cluster} ...\n")
    assert stat.S_IMODE(cluster.stat().st_mode) == 0o700
    again = run_in(tmp_path, upgrade)
    assert (again.returncode, again.stderr) == (0, "")
    listed = run_in(tmp_path, [*ROSTER, "feed", "list"])
    assert (listed.returncode, listed.stdout) == (0, "there are no feeds\n")
