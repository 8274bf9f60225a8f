"""Run by a test, not collected with the others: a test run that is killed while its server serves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.cli.conftest import make_environment
from tests.db.another_process import ask

from .watchdog import VARIABLE


def test_run_is_killed(server_url: str) -> None:
    """Prints the process ids of the server and of another child, and the folder; then no code of the run runs again."""
    kept = {name: value for name, value in (os.environ | make_environment()).items() if value is not None}
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], env=kept)
    Path(os.environ["REPORT"]).write_text(f"{ask(server_url)} {child.pid} {os.environ[VARIABLE]}")
    os.kill(os.getpid(), signal.SIGKILL)
