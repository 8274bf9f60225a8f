"""`roster feed`, `roster db` and the settings: what they print and what they refuse."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from click.testing import CliRunner

import roster_service
from roster_service.cli import main
from roster_service.db.tables import api_keys, roster_state
from roster_service.feeds.sync_lock import SYNC_LOCK
from roster_service.roster.revisions import GENERATION, read_revisions
from sync_scripts import load_oneroster
from tests.cli.conftest import Roster, make_environment

Answer = Callable[..., Any]


def test_a_feed_remembers_where_its_export_lies(answer: Answer, tmp_path: Path) -> None:
    path = tmp_path / "springfield.zip"
    added = answer("feed", "add", "springfield", "--format", "oneroster", "--path", str(path))
    assert describe(added) == {
        "name": "springfield",
        "format": "oneroster",
        "path": str(path),
        "enabled": True,
        "state": "added",
        "hold_tombstones_percent": None,
        "hold_changes_percent": None,
        "hold_rejected_percent": None,
        "marker": None,
        "pause": None,
        "strict": False,
        "words": False,
        "last_run": None,
        "last_outcome": None,
        "last_good_run": None,
        "age_seconds": None,
        "held_run": None,
        "held_message": None,
        "is_paused": False,
        "is_applied": False,
        "is_emptied": False,
        "latest_run": None,
        "message": None,
        "rejected_percent": 0.0,
    }
    (listed,) = answer("feed", "list")
    assert describe(listed) == describe(added)
    assert [it["word"] for it in listed["conditions"]] == ["not loaded"]


def test_a_link_to_the_latest_export_stays_a_link(answer: Answer, tmp_path: Path) -> None:
    """A SIS lets it lead to a new folder each day."""
    folder, link = tmp_path / "2026-09-01", tmp_path / "latest"
    folder.mkdir()
    link.symlink_to(folder)
    added = answer("feed", "add", "springfield", "--format", "oneroster", "--path", str(link))
    answer("feed", "set", "springfield", "--path", str(folder))
    changed = answer("feed", "set", "springfield", "--path", str(link))
    assert [it["path"] for it in (added, changed)] == [str(link), str(link)]


def describe(feed: dict[str, Any]) -> dict[str, Any]:
    """What is stored of a feed, without what that means for an operator."""
    return {name: value for name, value in feed.items() if name != "conditions"}


def test_a_load_before_there_is_a_database_names_the_command_that_makes_one(tmp_path: Path) -> None:
    environment = make_environment(home=str(tmp_path))
    done = CliRunner().invoke(load_oneroster.main, ["--feed", "a", str(tmp_path)], env=environment)
    assert (done.exit_code, "; `roster db upgrade` makes a new one" in done.stderr) == (5, True)


def test_a_feed_name_is_taken_once(answer: Answer, roster: Roster) -> None:
    answer("feed", "add", "springfield", "--format", "oneroster")
    done = roster("feed", "add", "springfield", "--format", "oneroster")
    assert (done.exit_code, done.stderr) == (1, "roster: there is a feed springfield already\n")


SETTINGS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "tombstones": (["--hold-tombstones", "20"], {"hold_tombstones_percent": 20}),
    "changes": (["--hold-changes", "0"], {"hold_changes_percent": 0}),
    "both": (
        ["--hold-tombstones", "100", "--hold-changes", "50"],
        {"hold_tombstones_percent": 100, "hold_changes_percent": 50},
    ),
    "back to the default": (["--hold-tombstones", "default"], {}),
    "disabled": (["--disable"], {"enabled": False}),
    "enabled": (["--enable"], {}),
    "a path": (["--path", "/exports/other.zip"], {"path": "/exports/other.zip"}),
}


@pytest.mark.parametrize(("options", "wanted"), SETTINGS.values(), ids=SETTINGS)
def test_a_feed_is_set(answer: Answer, roster: Roster, options: list[str], wanted: dict[str, Any]) -> None:
    answer("feed", "add", "other", "--format", "clever")
    before = answer("feed", "add", "springfield", "--format", "oneroster", "--path", "/exports/springfield.zip")
    assert describe(answer("feed", "set", "springfield", *options)) == describe(before | wanted)
    assert describe(answer("feed", "list")[1]) == describe(before | wanted)
    assert "springfield" in roster("feed", "set", "springfield", *options).stdout


def test_what_is_set_goes_back_to_the_default(answer: Answer) -> None:
    before = answer("feed", "add", "springfield", "--format", "oneroster")
    answer("feed", "set", "springfield", "--hold-changes", "5", "--hold-tombstones", "5", "--disable")
    options = ["--hold-changes", "default", "--hold-tombstones", "default", "--enable"]
    assert answer("feed", "set", "springfield", *options) == before


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        pytest.param(["none", "--enable"], 1, "there is no feed none", id="unknown feed"),
        pytest.param(["springfield"], 1, "there is nothing to set", id="nothing"),
        pytest.param(
            ["springfield", "--hold-changes", "101"], 2, "'101' is no whole number from 0 to 100", id="too high"
        ),
        pytest.param(
            ["springfield", "--hold-tombstones", "-1"], 2, "'-1' is no whole number from 0 to 100", id="too low"
        ),
        pytest.param(
            ["springfield", "--hold-changes", "few"],
            2,
            "'few' is no whole number from 0 to 100, nor default",
            id="no number",
        ),
    ],
)
def test_what_cannot_be_set_is_refused(
    answer: Answer, roster: Roster, arguments: list[str], code: int, reason: str
) -> None:
    before = answer("feed", "add", "springfield", "--format", "oneroster")
    done = roster("feed", "set", *arguments)
    assert done.exit_code == code
    assert reason in done.stderr
    assert list(map(describe, answer("feed", "list"))) == [describe(before)]


def test_upgrading_twice_changes_nothing(answer: Answer) -> None:
    upgraded = answer("db", "upgrade")
    assert upgraded["before"] == upgraded["after"]


@pytest.mark.parametrize("command", [["db", "upgrade"], ["vendor", "list"]], ids=" ".join)
def test_a_database_of_a_newer_version_is_refused(roster: Roster, engine: sa.Engine, command: list[str]) -> None:
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = 'to_come'"))
    done = roster(*command)
    reason = "roster: the database is at revision to_come, of a newer version; install the newer version\n"
    assert (done.exit_code, done.stderr) == (1, reason)


def test_an_installation_without_migrations_refuses_to_upgrade(server_url: str, tmp_path: Path) -> None:
    package = Path(roster_service.__file__).parent
    shutil.copytree(package, tmp_path / package.name, ignore=shutil.ignore_patterns("0*.py", "__pycache__"))
    changed = {**os.environ, **make_environment(database_url=server_url), "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", "from roster_service.cli import main; main()", "db", "upgrade"],
        env={name: value for name, value in changed.items() if value is not None},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    folder = tmp_path / package.name / "db" / "migrations" / "versions"
    reason = f"this installation has no migrations in {folder}; install the service again"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"roster: {reason}\n")


def test_after_a_restore_the_command_says_what_else_to_do(answer: Answer, roster: Roster) -> None:
    reported = roster("db", "restored")
    assert reported.exit_code == 0
    commands = ("vendor list", "delivery list", "operator list", "keys rotate", "sync run")
    assert [it for it in commands if f"`roster {it}`" not in reported.stdout] == []
    again = answer("db", "restored")
    assert list(again) == ["revision", "as_of"]
    assert f"revision {again['revision']};" not in reported.stdout


def test_a_restore_does_not_come_between_a_sync_and_its_stamp(roster: Roster, engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:class, :object)"), SYNC_LOCK)
        done = roster("db", "restored")
    assert (done.exit_code, done.stderr) == (1, "roster: a sync is under way; try again when it is done\n")


def is_compared(item: Any, name: str | None, kind: str, is_reflected: bool, _other: Any) -> bool:
    """A primary key that the first load makes is a unique index of its name, which nothing declares. An index of an
    expression is compared by its name alone: PostgreSQL writes the expression in other words."""
    if kind != "index":
        return True
    is_key = is_reflected and name == f"pk_{item.table.name}" and item.unique
    return not (is_key or is_of_expression(item))


def is_of_expression(index: sa.Index) -> bool:
    """Whether an index has something else than columns."""
    return not all(isinstance(expression, sa.Column) for expression in index.expressions)


def test_the_migrations_make_the_tables_that_the_code_declares(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        current, head = read_revisions(connection)
        options = {"compare_type": True, "compare_server_default": True, "include_object": is_compared}
        context = MigrationContext.configure(connection, opts=options)
        differences = compare_metadata(context, api_keys.metadata)
        made = connection.scalars(sa.text("SELECT indexname FROM pg_indexes WHERE schemaname = current_schema()")).all()
        generation = connection.scalar(sa.select(roster_state.c.generation))
    assert (current, generation) == (head, GENERATION)
    assert differences == []
    declared = {index.name for table in api_keys.metadata.tables.values() for index in table.indexes}
    assert declared <= set(made)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        pytest.param(
            {"prot": "8001"}, "ROSTER_PROT is no setting of this service; did you mean ROSTER_PORT?", id="name"
        ),
        pytest.param({"port": "eight"}, "ROSTER_PORT must be a whole number from 1 to 65535", id="number"),
        pytest.param({"max_limit": "0"}, "ROSTER_MAX_LIMIT must be a whole number from 1 to 100000", id="range"),
        pytest.param({"secret_key": "short"}, "ROSTER_SECRET_KEY must have at least 32 characters", id="secret"),
        pytest.param({"public_url": "example.org"}, "ROSTER_PUBLIC_URL must begin with http://", id="address"),
        pytest.param({"database_url": "mysql://h/d"}, "must be PostgreSQL, not mysql", id="another database"),
        pytest.param({"database_url": "no url"}, "the database URL cannot be read", id="no URL"),
        pytest.param(
            {"database_url": "postgresql://u:hidden@127.0.0.1:1/d?sslmod=require"},
            "the database URL has the parameter sslmod, which libpq does not know",
            id="unknown parameter",
        ),
        pytest.param(
            {"database_url": "postgresql://u:hidden@127.0.0.1:1/d?sslpassword=hidden"},
            "the database at postgresql://u:***@127.0.0.1:1/d?sslpassword=*** does not answer",
            id="unreachable",
        ),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused_in_one_line(settings: dict[str, str], reason: str) -> None:
    done = CliRunner().invoke(main, ["feed", "list"], env=make_environment(**settings))
    assert done.exit_code == 1
    assert done.stderr.startswith("roster: ")
    assert reason in done.stderr
    assert "hidden" not in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_database_without_tables_says_what_to_run(server_url: str) -> None:
    done = CliRunner().invoke(main, ["vendor", "list"], env=make_environment(database_url=server_url))
    assert done.exit_code == 1
    assert done.stderr == "roster: the database has no tables yet; run `roster db upgrade`\n"
