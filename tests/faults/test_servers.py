"""A PostgreSQL that dies or whose disk is full: readers see the old roster or the new one, and a rerun ends well."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import sqlalchemy as sa

from roster_service.db import tables
from roster_service.db.embedded_server import open_embedded
from roster_service.db.engine import make_engine
from roster_service.roster.upgrades import upgrade
from sync_scripts.engine.exit_codes import ExitCode
from sync_scripts.engine.load import load
from tests.conditions import PATIENCE_SECONDS
from tests.postgres.databases import administer, url_of
from tests.sync.conftest import empty_roster
from tests.sync.export_changes import rows_of

from .conftest import SERVER_ROUNDS, read_roster, start, wait_for_a_moment


class OwnServer:
    """A server of these tests alone, which they may kill."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._open = contextlib.ExitStack()
        self.url = ""
        self.start()

    def start(self) -> None:
        """Starts it; one that died is started again once the last of its processes is gone."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                self.url = self._open.enter_context(open_embedded(self._home))
                administer(self.url, "SELECT 1")
                return
            except Exception:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def kill(self) -> None:
        """kill -9 of the server and of all its processes."""
        postmaster = psutil.Process(int((self._home / "postgres" / "postmaster.pid").read_text().split()[0]))
        family = [postmaster, *postmaster.children(recursive=True)]
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(family, PATIENCE_SECONDS)
        self.close()

    def close(self) -> None:
        """Stops it, or forgets that it ran."""
        self._open.close()


@pytest.fixture(scope="module")
def server() -> Iterator[OwnServer]:
    """A server that is thrown away."""
    with tempfile.TemporaryDirectory(prefix="roster-fault-", ignore_cleanup_errors=True) as folder:
        made = OwnServer(Path(folder))
        administer(made.url, "CREATE DATABASE roster")
        engine = make_engine(url_of(made.url, "roster"))
        upgrade(engine)
        engine.dispose()
        yield made
        made.close()


@pytest.fixture
def connect(server: OwnServer) -> Iterator[Callable[[], sa.Engine]]:
    """Makes engines on the server as it runs now; the roster is empty at first."""
    with contextlib.ExitStack() as stack:

        def make() -> sa.Engine:
            engine = make_engine(url_of(server.url, "roster"))
            stack.callback(engine.dispose)
            return engine

        empty_roster(make())
        yield make


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A folder of 2 MiB."""
    with tempfile.TemporaryDirectory(prefix="roster-disk-") as folder:
        Path(folder).chmod(0o755)
        mounted = os.geteuid() == 0 and shutil.which("mount") is not None and _mount("size=2m", folder)
        if not mounted:
            pytest.skip("a small disk takes a mount, which is not allowed here")
        try:
            # The server runs as a user of its own.
            shutil.chown(folder, "pgserver")
            yield Path(folder)
        finally:
            subprocess.run(["umount", folder], check=True)


def _mount(options: str, folder: str) -> bool:
    return (
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=False, capture_output=True
        ).returncode
        == 0
    )


def _enlarge(folder: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=512m", str(folder)], check=True)


# What lies on the small disk: what COPY fills, and what the last step writes.
PLACES = {
    "staging": "ALTER DATABASE roster SET temp_tablespaces = small",
    "roster": "ALTER TABLE users SET TABLESPACE small",
}
HOME = {
    "staging": "ALTER DATABASE roster RESET temp_tablespaces",
    "roster": "ALTER TABLE users SET TABLESPACE pg_default",
}


@pytest.mark.parametrize("place", PLACES)
def test_the_disk_is_full(
    server: OwnServer, connect: Callable[[], sa.Engine], load_runs: tuple[Path, Path], small_disk: Path, place: str
) -> None:
    def add_users(rows: list[list[str]]) -> None:
        model = dict(zip(rows[0], rows[1], strict=True))
        rows += [list({**model, "sourcedId": f"more-{n}", "agentSourcedIds": ""}.values()) for n in range(16_000)]

    url = url_of(server.url, "roster")
    administer(url, f"CREATE TABLESPACE small LOCATION '{small_disk}'", PLACES[place])
    try:
        engine = connect()
        load(engine, "feed", load_runs[0])
        before = read_roster(engine)
        rows_of("users", add_users)(load_runs[1])
        process = start(engine, load_runs[1])
        out, _ = process.communicate()
        # Another try in ten minutes would not help.
        assert process.returncode == ExitCode.FAILED
        reported = json.loads(out)
        assert reported["outcome"] == "failed"
        assert "the disk of the database is full: " in reported["message"]
        assert "No space left on device" in reported["message"]
        assert read_roster(engine) == before
        with engine.connect() as connection:
            runs = connection.execute(sa.select(tables.sync_runs.c.outcome).order_by(tables.sync_runs.c.id))
            assert runs.scalars().all() == ["done", "failed"]
        _enlarge(small_disk)
        report = load(engine, "feed", load_runs[1])
        assert (report.outcome, report.counts["users"].added) == ("done", 16_000)
        assert load(engine, "feed", load_runs[1]).outcome == "unchanged"
        empty_roster(engine)
        engine.dispose()
    finally:
        administer(url, HOME[place], "DROP TABLESPACE small")


@pytest.mark.parametrize("seed", range(SERVER_ROUNDS))
def test_the_server_is_killed_at_any_moment(
    server: OwnServer,
    connect: Callable[[], sa.Engine],
    load_runs: tuple[Path, Path],
    rosters: list[dict[str, Any]],
    seed: int,
) -> None:
    engine = connect()
    load(engine, "feed", load_runs[0])
    process = start(engine, load_runs[1])
    wait_for_a_moment(engine, process, range(1, 60), seed)
    engine.dispose()
    server.kill()
    out, _ = process.communicate()
    assert process.returncode in (ExitCode.LOADED, ExitCode.UNAVAILABLE), out
    server.start()
    engine = connect()
    # Who loses the server while it commits does not know whether it has.
    assert read_roster(engine) in (rosters[1:] if process.returncode == ExitCode.LOADED else rosters)
    load(engine, "feed", load_runs[1])
    assert read_roster(engine) == rosters[1]
