"""A database of a released version is upgraded to this one, and nothing of it is lost."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command

from roster_service.app import create_app
from roster_service.db.engine import make_engine
from roster_service.feeds.group_check import find_wrong_groups
from roster_service.roster import revisions
from roster_service.roster.label_check import find_wrong_labels
from roster_service.roster.upgrades import make_config, upgrade
from roster_service.settings import Settings
from tests.conftest import close_app
from tests.contract.conftest import SECRET_KEY
from tests.db.next_revision import add_revision
from tests.db.released_data import FOLDER, MIGRATIONS, read_shown
from tests.db.test_schema import SQL
from tests.postgres.databases import administer, drop_databases, url_of


@dataclass(frozen=True)
class Release:
    """`revision`: the last one of its migrations; `hashes`: SHA-256 of their files; `objects`: of the functions and
    policies together."""

    revision: str
    hashes: Mapping[str, str]
    objects: str


RELEASES: Mapping[str, Release] = {
    "0.1.0": Release(
        "1_schema",
        {
            "0001_schema.py": "79d7dad857939f0be367644ef70f6c62ba1d9ac8bad2e0d7568654cac11572f8",
            "0001_schema.sql": "9dc0ce1f4a9c557e163e569b6f62e0bd677e7b4e2c9a9442869d0e1563d5f8f2",
        },
        "235d9d56cb313829f837c7b63ffeadcff20584c0af1e66a7e54fbe22caebb307",
    ),
}


@pytest.mark.parametrize("version", RELEASES)
def test_the_migrations_of_a_release_stay_as_they_are(version: str) -> None:
    """A change of the tables is a migration of its own: a database of the release has run these."""
    wanted = RELEASES[version].hashes
    assert {name: hashlib.sha256((MIGRATIONS / name).read_bytes()).hexdigest() for name in wanted} == wanted


def test_another_function_or_policy_comes_with_a_migration() -> None:
    """An upgrade applies them with a new revision alone; the migration may be empty."""
    *_, (version, release) = RELEASES.items()
    files = sorted(path for path in SQL.rglob("*.sql"))
    joined = b"".join(f"{path.relative_to(SQL)}\n".encode() + path.read_bytes() for path in files)
    if max(revisions.list_revisions()) == release.revision:
        assert hashlib.sha256(joined).hexdigest() == release.objects, f"{version} has others: add a migration"


def test_each_release_has_its_data() -> None:
    """`make release` asks for those of this version."""
    assert {path.stem for path in FOLDER.iterdir()} == set(RELEASES)


@pytest.fixture
def url(server_url: str) -> Iterator[str]:
    """A database without tables."""
    name = "roster_test_released"
    administer(server_url, f"CREATE DATABASE {name}")
    yield url_of(server_url, name)
    drop_databases(server_url, name)


def restore(engine: sa.Engine, version: str) -> None:
    """Makes the database one of the release, with its rows."""
    with engine.begin() as connection:
        config = make_config()
        config.attributes["connection"] = connection
        command.upgrade(config, RELEASES[version].revision)
        # The rows that the migrations begin with are among those that follow.
        connection.exec_driver_sql("DELETE FROM roster_state; DELETE FROM vendor_defaults")
    driver = engine.raw_connection()
    driver.cursor().execute((FOLDER / f"{version}.sql").read_text())
    driver.commit()
    driver.close()


@pytest.mark.parametrize("version", RELEASES)
def test_what_a_release_served_is_served_after_an_upgrade(
    url: str, version: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """There is one more revision, so that the functions and policies are always applied."""
    engine = make_engine(url)
    restore(engine, version)
    newest = max(revisions.list_revisions())
    monkeypatch.setattr(revisions, "FOLDERS", add_revision(tmp_path, newest))
    assert upgrade(engine) == (RELEASES[version].revision, "of_the_tests")
    with engine.connect() as connection:
        assert (find_wrong_labels(connection), find_wrong_groups(connection)) == ({}, {})
    engine.dispose()
    described = json.loads((FOLDER / f"{version}.json").read_text())
    app = create_app(Settings(secret_key=SECRET_KEY, home=tmp_path), url)
    try:
        assert read_shown(app, described["credentials"]) == described["shown"]
    finally:
        close_app(app)
