"""The script as an operator calls it: what it prints, and how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import Engine

from sync_scripts.exits import CODES, MEANINGS, Exit
from sync_scripts.load_oneroster import main
from sync_scripts.runs import take_lock

from .bending import cell, column


@pytest.fixture
def settings(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> str:
    """The settings that lead to the database of the test; its URL."""
    url = engine.url.render_as_string(hide_password=False)
    monkeypatch.setenv("ROSTER_DATABASE_URL", url)
    return url


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.mark.usefixtures("settings")
def test_a_table_of_counts(springfield: Path) -> None:
    result = run("--feed", "springfield", springfield)
    assert result.exit_code == Exit.LOADED
    assert "springfield: done" in result.stdout
    assert "academicSessions │     7 │" in result.stdout
    assert result.stdout.endswith("the feed springfield is new\n")


@pytest.mark.usefixtures("settings")
def test_one_json_object(springfield: Path) -> None:
    first = json.loads(run("--feed", "springfield", "--json", springfield).stdout)
    assert list(first) == [
        "feed", "format", "source", "stamp", "outcome", "counts", "seconds", "revision", "notices",
    ]  # fmt: skip
    assert (first["outcome"], first["revision"]) == ("done", 1)
    assert first["stamp"].endswith("Z")
    assert first["counts"]["users"]["added"] == 15
    second = json.loads(run("--feed", "springfield", "--json", springfield).stdout)
    assert (second["outcome"], second["stamp"], second["revision"]) == ("unchanged", None, None)


@pytest.mark.usefixtures("settings")
def test_refused(springfield: Path) -> None:
    column("enrollments", "role", "pupil")(springfield)
    result = run("--feed", "springfield", springfield)
    assert result.exit_code == Exit.REFUSED
    assert result.stdout == ""
    assert result.stderr.startswith(
        "refused for 17 reasons; nothing was changed\nenrollments.csv, line 2, column role: must be one of"
    )
    cell("orgs", 2, "type", "x")(springfield)
    told = json.loads(run("--feed", "springfield", "--json", springfield).stdout)
    assert (told["outcome"], told["total"]) == ("refused", 18)
    first = told["refusals"][0]
    assert {**first, "reason": ""} == {"file": "orgs.csv", "line": 2, "column": "type", "value": "x", "reason": ""}


@pytest.mark.usefixtures("settings")
def test_locked(engine: Engine, springfield: Path) -> None:
    with engine.begin() as other:
        take_lock(other, "other")
        result = run("--feed", "springfield", "--json", springfield)
    assert result.exit_code == Exit.LOCKED
    assert json.loads(result.stdout)["outcome"] == "locked"


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("ROSTER_DATABASE_URL", "postgresql://nobody:secret@127.0.0.1:1/none", "does not answer"),
        ("ROSTER_DATABASE_URL", "mysql://x/y", "must be PostgreSQL"),
        ("ROSTER_PORT", "none", "ROSTER_PORT must be"),
    ],
)
@pytest.mark.usefixtures("settings")
def test_unavailable(springfield: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, words: str) -> None:
    monkeypatch.setenv(variable, value)
    result = run("--feed", "springfield", springfield)
    assert result.exit_code == Exit.UNAVAILABLE
    assert words in result.stderr
    assert "secret" not in result.stderr


def test_a_database_without_tables(server_url: str, springfield: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROSTER_DATABASE_URL", server_url)
    result = run("--feed", "springfield", springfield)
    assert result.exit_code == Exit.UNAVAILABLE
    assert "roster db upgrade" in result.stderr


@pytest.mark.parametrize("arguments", [[], ["--feed", "x"], ["path"], ["--feed", "x", "path", "--force"]])
def test_wrong_usage(arguments: list[str]) -> None:
    assert run(*arguments).exit_code == Exit.REFUSED


def test_help_shows_every_exit_code() -> None:
    assert set(MEANINGS) == set(Exit) == {Exit.LOADED, *CODES.values()}
    shown = run("--help").stdout
    for code, (_, meaning) in MEANINGS.items():
        assert f"  {code:d}  {meaning}" in shown


def test_as_a_module(settings: str, springfield: Path) -> None:
    """The way it is called, in a process of its own."""
    command = [sys.executable, "-m", "sync_scripts.load_oneroster", "--feed", "springfield", "--json", str(springfield)]
    done = subprocess.run(
        command, env={**os.environ, "ROSTER_DATABASE_URL": settings}, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout)["outcome"] == "done"
    assert done.stderr == ""
