"""Accounts move to another database, of an older PostgreSQL too, and go on to count there."""

from __future__ import annotations

import errno
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.accounts.account_export import _DERIVED, EXPORTED
from roster_service.auth.credentials.signing_keys import ensure_signing_key
from roster_service.cli import database
from roster_service.db.embedded_server import SERVER_OPTIONS, SUPERUSER, to_url
from roster_service.db.engine import make_engine
from roster_service.db.postgres_programs import Programs, find_programs
from roster_service.roster.upgrades import upgrade
from tests.cli.conftest import Roster, run_roster
from tests.faults.services import fill

SECRET_KEY = "a secret key of the tests, long enough"
# The oldest version that the service supports, where Debian installs it.
OLDEST = Path("/usr/lib/postgresql/15/bin")


@pytest.fixture
def older() -> Iterator[sa.Engine]:
    """An upgraded database on an older PostgreSQL."""
    if not (OLDEST / "initdb").exists():
        pytest.skip("PostgreSQL 15 is not installed")
    with tempfile.TemporaryDirectory(prefix="roster-older-") as folder:
        Path(folder).chmod(0o755)
        cluster = Path(folder, "postgres")
        cluster.mkdir()
        programs = Programs(OLDEST, find_programs(cluster).user)
        programs.change_owner(cluster)
        made = programs.run("initdb", cluster, f"--username={SUPERUSER}", "--auth=trust", "--encoding=utf8")
        assert made.returncode == 0, made.stderr
        started = programs.run("pg_ctl", cluster, "start", "--wait", "--log=log", f"--options={SERVER_OPTIONS}")
        assert started.returncode == 0, started.stderr
        engine = make_engine(to_url(cluster))
        try:
            upgrade(engine)
            yield engine
        finally:
            engine.dispose()
            programs.run("pg_ctl", cluster, "stop", "--wait", "--mode=immediate")


def read_accounts(engine: sa.Engine) -> dict[str, list[Any]]:
    """The rows of each table that moves, without what a sync sets."""
    with engine.connect() as connection:
        return {
            table.name: connection.execute(
                sa.select(*(column for column in table.c if column not in _DERIVED)).order_by(*table.primary_key)
            ).all()
            for table in EXPORTED
        }


@pytest.mark.shows(
    "Machine and database",
    "`roster settings` shows no secret; a file of exported accounts has mode 0600.",
)
def test_the_accounts_of_the_embedded_server_move_to_an_older_one(
    engine: sa.Engine, roster: Roster, older: sa.Engine, tmp_path: Path
) -> None:
    fill(engine)
    with engine.begin() as connection:
        ensure_signing_key(connection, SECRET_KEY)
    file = tmp_path / "accounts.sql"
    assert roster("db", "export-accounts", str(file)).exit_code == 0
    assert file.stat().st_mode & 0o777 == 0o600
    url = older.url.set(drivername="postgresql").render_as_string(hide_password=False)
    loaded = subprocess.run(
        [OLDEST / "psql", "--set=ON_ERROR_STOP=1", "--quiet", f"--file={file}", url],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (loaded.returncode, loaded.stderr) == (0, "")
    accounts = read_accounts(engine)
    assert all(accounts[name] for name in ("feeds", "vendors", "vendor_grants", "api_keys", "oauth_clients"))
    assert read_accounts(older) == accounts
    # The secret key that sealed the signing key opens it, and a new vendor gets an id of its own.
    with older.begin() as connection:
        ensure_signing_key(connection, SECRET_KEY)
    added = run_roster(url, tmp_path, "vendor", "add", "another@example.com", "--name", "Another")
    assert (added.exit_code, added.stderr) == (0, "")


def test_a_file_that_exists_is_not_replaced(roster: Roster, tmp_path: Path) -> None:
    file = tmp_path / "accounts.sql"
    file.write_text("mine")
    refused = roster("db", "export-accounts", str(file))
    assert (refused.exit_code, file.read_text()) == (1, "mine")
    assert refused.stderr == f"roster: {file} exists, and is not replaced\n"


def test_a_name_that_no_file_can_have_is_refused(roster: Roster, tmp_path: Path) -> None:
    refused = roster("db", "export-accounts", str(tmp_path / ("x" * 300)))
    assert (refused.exit_code, "cannot be written: File name too long" in refused.stderr) == (1, True)


def test_a_full_disk_leaves_no_part_of_the_file(
    roster: Roster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill_disk(_connection: sa.Connection) -> Iterator[str]:
        yield "INSERT"
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(database, "export_accounts", fill_disk)
    refused = roster("db", "export-accounts", str(tmp_path / "accounts.sql"))
    assert (refused.exit_code, list(tmp_path.glob("*accounts*"))) == (1, [])
    assert "cannot be written: No space left on device" in refused.stderr
