"""The system kills a process of the embedded PostgreSQL while a load, a command or a start is its only user: the next
command works, and nothing that was committed is lost."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from roster_service.db.embedded_server import open_embedded
from roster_service.db.engine import make_engine
from roster_service.settings import PREFIX
from tests.cli.alone_check import find_free_port
from tests.conditions import PATIENCE_SECONDS

from .conftest import ROUNDS, read_roster, write_load_runs

ROSTER = (sys.executable, "-c", "from roster_service.cli import main; main()")
LOAD = (sys.executable, "-m", "sync_scripts.load_oneroster", "--feed", "feed", "--now")


class Installation:
    """A data folder with an embedded server, and programs that are the only user of it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        kept = {name: text for name, text in os.environ.items() if not name.startswith(PREFIX)}
        self._environment = {**kept, "ROSTER_HOME": str(home), "ROSTER_WORKERS": "1", "ROSTER_CONSOLE": "off"}

    def start(self, command: Sequence[str]) -> subprocess.Popen[str]:
        """Starts a program."""
        return subprocess.Popen(
            command, env=self._environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def run(self, command: Sequence[str]) -> str:
        """What a program prints that does not fail."""
        process = self.start(command)
        out, errors = process.communicate(timeout=4 * PATIENCE_SECONDS)
        assert process.returncode == 0, errors
        return out

    def list_backends(self) -> list[psutil.Process]:
        """The processes of the server but for the postmaster; none, if it does not run."""
        with suppress(OSError, ValueError, IndexError, psutil.Error):
            return psutil.Process(int((self.home / "postgres/postmaster.pid").read_text().split()[0])).children()
        return []

    def kill_one(self, process: subprocess.Popen[str], seed: int) -> bool:
        """Kills a process of the server at a random moment of a program. Returns whether there was one."""
        chance = random.Random(seed)
        # A moment is a look at the server at which its processes are others, or do something else.
        left, last = chance.choice(range(25)), ""
        while process.poll() is None:
            backends = self.list_backends()
            with suppress(psutil.Error):
                now = str([it.cmdline() for it in backends])
                if now != last:
                    left, last = left - 1, now
                if backends and left <= 0:
                    chance.choice(backends).send_signal(signal.SIGKILL)
                    return True
            time.sleep(0.002)
        return False

    def read_roster(self) -> dict[str, list[dict[str, Any]]]:
        """The roster as it is."""
        with open_embedded(self.home) as url:
            engine = make_engine(url)
            found = read_roster(engine)
            engine.dispose()
        return found


@pytest.fixture(scope="module")
def load_runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The exports of two runs."""
    return write_load_runs(tmp_path_factory.mktemp("load-runs"))


@pytest.fixture(scope="module")
def installation() -> Iterator[Installation]:
    """One with tables."""
    with tempfile.TemporaryDirectory(prefix="roster-test-") as folder:
        made = Installation(Path(folder, "home"))
        made.run((*ROSTER, "db", "upgrade"))
        yield made


@pytest.fixture(scope="module")
def rosters(installation: Installation, load_runs: tuple[Path, Path]) -> list[dict[str, Any]]:
    """The rosters of undisturbed loads, each after the other one: with its tombstones."""
    found = []
    for load_run in (*load_runs, *load_runs):
        installation.run((*LOAD, str(load_run)))
        found.append(installation.read_roster())
    return found[-2:]


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_the_next_command_works(
    installation: Installation, load_runs: tuple[Path, Path], rosters: list[dict[str, Any]], seed: int
) -> None:
    """A load, a command, and a start, in turn."""
    other = seed // 3 % 2
    commands = (
        (*LOAD, str(load_runs[other])),
        (*ROSTER, "vendor", "add", f"vendor-{seed}@vendor.example", "--name", f"Vendor {seed}"),
        (*ROSTER, "run", "--port", str(find_free_port())),
    )
    before = installation.read_roster()
    process = installation.start(commands[seed % 3])
    installation.kill_one(process, seed)
    if seed % 3 == 2:
        process.send_signal(signal.SIGINT)
    process.communicate(timeout=4 * PATIENCE_SECONDS)
    assert isinstance(json.loads(installation.run((*ROSTER, "vendor", "list", "--json"))), list)
    assert installation.read_roster() in (before, rosters[other])
    installation.run((*LOAD, str(load_runs[other])))
    assert installation.read_roster() == rosters[other]
    assert installation.list_backends() == [], "the last user stops the server"
