"""A test run that is killed leaves no server, no process and no folder behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.conditions import wait_for
from tests.conftest import TEST_DATABASE_VARIABLE
from tests.extent import long

PROJECT = Path(__file__).parents[2]


@long
@pytest.mark.skipif(TEST_DATABASE_VARIABLE in os.environ, reason="the tests start no server")
def test_killed_run_leaves_no_server(tmp_path: Path) -> None:
    report = tmp_path / "report"
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("COV_", "PYTEST_"))}
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "tests/postgres/killed_run.py",
        ],
        cwd=PROJECT,
        env=plain | {"REPORT": str(report)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    server, child, folder = report.read_text().split()
    wait_for(lambda: not Path(folder).exists())
    assert not is_running(int(server))
    assert not is_running(int(child))


def is_running(pid: int) -> bool:
    """Whether the process runs; one that ended and that nobody asked about does not."""
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
