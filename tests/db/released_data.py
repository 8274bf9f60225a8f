"""What a database of each released version has, for the test that upgrades it.

`python -m tests.db.released_data` writes two files of the version of this checkout, before its release and never after:
`released/VERSION.sql`, the rows, and `VERSION.json`, what is served of them. The tables of a release are those of its
migrations, which stay as they are.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flask import Flask

import roster_service
from roster_service.app import create_app
from roster_service.auth.credentials.signing_keys import ensure_signing_key
from roster_service.change_log.actors import find_system_user
from roster_service.db import tables
from roster_service.db.embedded_server import open_embedded
from roster_service.db.engine import make_engine
from roster_service.db.migrations import versions
from roster_service.roster.upgrades import upgrade
from roster_service.settings import Settings
from sync_scripts.engine.load import load
from tests.cli.conftest import run_roster
from tests.conftest import close_app
from tests.console.states import read_rows, write_rows
from tests.contract.client import SCOPES, RosterClient
from tests.contract.conftest import GRANTS, SECRET_KEY, add_vendor
from tests.db.schema_snapshot import PG_DUMP
from tests.postgres.loaded import EXPORTS, FEEDS

FOLDER = Path(__file__).with_name("released")
MIGRATIONS = Path(versions.__file__).parent
PATHS = ("/orgs", "/academicSessions", "/courses", "/classes", "/users", "/enrollments", "/demographics")
# What requests leave, which says nothing of a release.
OF_REQUESTS = (
    *(tables.orderings, tables.ordering_chunks, tables.pulls, tables.audit, tables.usage, tables.last_uses),
    *(tables.rate_windows, tables.rate_hits, tables.refused_requests),
)
# Comments, and settings of a session, of which an older server does not know all.
ASIDE = ("--", "\\", "SET ", "SELECT pg_catalog.set_config(")
SYSTEM_USER = find_system_user(None).name
Shown = Mapping[str, Any]
VERSION = "v1p2"
RULED, AGREED = "south@vendors.example", "springfield@vendors.example"
# What operators do beside the grants of `GRANTS`: every table of accounts and rights has a row.
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("vendor", "grant", RULED, "--district", "spr-district", "--students", "grades~'03'", "--staff", "all", "--yes"),
    ("vendor", "set-withheld", RULED, "phone", "--yes"),
    (
        *("agreement", "set", AGREED, "--title", "Reading", "--purpose", "Books", "--contact", "privacy@v.example"),
        *("--first-day", "2026-01-01", "--last-day", "2126-01-01", "--deletion", "at the end"),
        *("--element", "names", "--element", "classes", "--district", "spr-district", "--yes"),
    ),
    ("person", "hide", "spr-student-3", "--from", "both@vendors.example", "--yes"),
    ("deletion", "ask", "spr-student-2", "--vendor", AGREED, "--due", "2126-01-01", "--yes"),
    ("person", "hide", "spr-student-4", "--yes"),
    ("operator", "add", "owner@district.example", "--name", "Owner", "--role", "owner"),
)


def fill(url: str, folder: Path) -> Mapping[str, tuple[str, str]]:
    """Makes a database of this version, with both small exports, of which the second one has changed; returns the
    credentials of each vendor's client."""
    engine = make_engine(url)
    upgrade(engine)
    for feed, export in FEEDS.items():
        load(engine, feed, EXPORTS / export)
    with engine.begin() as connection:
        credentials = {name: add_vendor(connection, name, grants) for name, grants in GRANTS.items()}
        ensure_signing_key(connection, SECRET_KEY)
    changed = shutil.copytree(EXPORTS / FEEDS["springfield"], folder / "changed")
    for name in ("enrollments.csv", "demographics.csv"):
        write_rows(changed / name, read_rows(changed / name)[:-1])
    load(engine, "springfield", changed)
    engine.dispose()
    (folder / "secret_key").write_text(SECRET_KEY)
    for command in COMMANDS:
        done = run_roster(url, folder, *command)
        assert done.exit_code == 0, (command, done.stderr)
    return credentials


def read_shown(app: Flask, credentials: Mapping[str, tuple[str, str]]) -> Shown:
    """What each vendor is shown with all scopes that it may have: by vendor and path, the date of each record by its
    sourcedId, or the status of a refusal."""
    client, shown = RosterClient(app, credentials), dict[str, Any]()
    for vendor in credentials:
        asked = client.ask_token(client.form(vendor, scope=" ".join(f"{VERSION}/{scope}" for scope in SCOPES)))
        for path in PATHS if asked.status == 200 else ():
            answer = client.call(VERSION, path, bearer=asked.json["access_token"])
            dates = {it["sourcedId"]: it["dateLastModified"] for it in answer.records} if answer.status == 200 else None
            shown[f"{vendor} {path}"] = dates or answer.status
    return shown


def main() -> None:
    """Writes the files of this version. Raises FileExistsError if it has some: remove those of no release."""
    rows = FOLDER / f"{roster_service.__version__}.sql"
    if rows.exists():
        raise FileExistsError(rows)
    with (
        tempfile.TemporaryDirectory(prefix="roster-released-", ignore_cleanup_errors=True) as folder,
        open_embedded(Path(folder)) as url,
    ):
        credentials = fill(url, Path(folder))
        app = create_app(Settings(secret_key=SECRET_KEY, home=Path(folder)), url)
        shown = read_shown(app, credentials)
        close_app(app)
        left_out = ("alembic_version", *(table.name for table in OF_REQUESTS))
        kept = ("--data-only", "--inserts", "--rows-per-insert=100", *(f"--exclude-table={it}" for it in left_out))
        dumped = subprocess.run([PG_DUMP, *kept, f"--dbname={url}"], capture_output=True, text=True, check=True).stdout
    for found, said in ((folder, "/exports"), (str(EXPORTS), "/exports"), (SYSTEM_USER, "roster@host")):
        dumped = dumped.replace(found, said)
    lines = [line for line in dumped.splitlines() if line and not line.startswith(ASIDE)]
    FOLDER.mkdir(exist_ok=True)
    rows.write_text("\n".join([*lines, ""]))
    described = json.dumps({"credentials": credentials, "shown": shown}, indent=1)
    rows.with_suffix(".json").write_text(described + "\n")


if __name__ == "__main__":
    main()
