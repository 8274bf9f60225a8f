"""The script as an operator calls it: what it prints, and how it ends."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result

from roster_service.db.tables import feeds, sync_rejections, sync_runs, users
from roster_service.feeds.run_history import STEPS
from roster_service.feeds.sync_lock import hold_lock
from sync_scripts.engine.exit_codes import CODES, MEANINGS, ExitCode
from sync_scripts.load_oneroster import main
from sync_scripts.reading.rejections import REJECTS_HEADER
from tests.sync.conftest import snapshot
from tests.sync.export_changes import both, cell, column, header, with_row


@pytest.fixture
def settings(engine: sa.Engine, monkeypatch: pytest.MonkeyPatch) -> str:
    """The settings that lead to the database of the test; its URL."""
    url = engine.url.render_as_string(hide_password=False)
    monkeypatch.setenv("ROSTER_DATABASE_URL", url)
    return url


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.mark.usefixtures("settings")
def test_a_table_of_counts(springfield: Path) -> None:
    result = run("--feed", "springfield", springfield)
    assert result.exit_code == ExitCode.LOADED
    assert "springfield: done" in result.stdout
    assert "academicSessions │     7 │" in result.stdout
    assert "\nthe feed springfield is new\n" in result.stdout


@pytest.mark.usefixtures("settings")
def test_a_feed_without_a_path_is_said_with_the_command_that_gives_it_one(engine: sa.Engine, springfield: Path) -> None:
    assert "no path" not in run("--feed", "spring field", "--dry-run", springfield).output
    command = f"`roster feed set 'spring field' --path {springfield}`"
    words = f"spring field: it has no path, so no nightly sync loads it; {command} gives it one\n"
    assert run("--feed", "spring field", springfield).stdout.endswith(f"\n{words}")
    with engine.begin() as connection:
        connection.execute(sa.update(feeds).values(path=str(springfield)))
    assert "no path" not in run("--feed", "spring field", springfield).output


@pytest.mark.usefixtures("settings")
def test_values_that_can_hardly_be_right_are_said_before_and_after_the_load(springfield: Path) -> None:
    cell("users", 2, "givenName", "zoe@example.org")(springfield)
    words, found = "Names with an @: 1", {"name-with-at": 1}
    tried = run("--feed", "springfield", "--dry-run", springfield)
    assert tried.stdout.endswith(f"\nlook at these values: {words}\n")
    assert json.loads(run("--feed", "springfield", "--dry-run", "--json", springfield).stdout)["doubts"] == found
    loaded = run("--feed", "springfield", springfield)
    assert loaded.stdout.endswith(f"\nlook at these values, which are loaded: {words}\n")
    cell("users", 3, "givenName", "Another")(springfield)
    assert json.loads(run("--feed", "springfield", "--json", springfield).stdout)["doubts"] == found
    assert "look at" not in run("--feed", "springfield", springfield).stdout


@pytest.mark.usefixtures("settings")
def test_one_json_object(springfield: Path) -> None:
    first = json.loads(run("--feed", "springfield", "--json", springfield).stdout)
    assert list(first) == [
        "feed", "run", "format", "source", "stamp", "outcome", "counts", "seconds", "message", "rejected", "notices",
        "files", "preview", "written_at", "revision", "causes", "rejections", "dry_run", "doubts",
    ]  # fmt: skip
    assert (first["outcome"], first["revision"]) == ("done", 1)
    assert first["stamp"].endswith("Z")
    assert first["counts"]["users"]["added"] == 15
    second = json.loads(run("--feed", "springfield", "--json", springfield).stdout)
    assert (second["outcome"], second["stamp"], second["revision"]) == ("unchanged", None, None)


@pytest.mark.usefixtures("settings")
def test_refused(springfield: Path) -> None:
    both(header("users", "role", "function"), with_row("manifest", propertyName="file.users"))(springfield)
    result = run("--feed", "springfield", springfield)
    assert result.exit_code == ExitCode.REFUSED
    assert result.stdout == ""
    assert result.stderr.startswith("refused for 1 reason; nothing was changed\nmanifest.csv, line 19, column property")
    reported = json.loads(run("--feed", "springfield", "--json", springfield).stdout)
    assert (reported["outcome"], reported["total"]) == ("refused", 1)
    first = reported["rejections"][0]
    assert {**first, "reason": ""} == {
        "file": "manifest.csv", "line": 19, "column": "propertyName", "reason": "",
    }  # fmt: skip


@pytest.mark.usefixtures("settings")
def test_a_missing_export_is_no_refused_one(engine: sa.Engine, tmp_path: Path) -> None:
    """The loader says what the nightly sync says of it."""
    words = f"there is no export at {tmp_path / 'nothing'}"
    result = run("--feed", "springfield", tmp_path / "nothing")
    assert (result.exit_code, result.stdout, result.stderr) == (ExitCode.STALE, "", f"{words}\n")
    reported = json.loads(run("--feed", "springfield", "--json", tmp_path / "nothing").stdout)
    assert (reported["outcome"], reported["message"]) == ("missing", words)
    stored = snapshot(engine, sync_runs).values()
    assert {(row["outcome"], row["message"]) for row in stored} == {("missing", words)}


@pytest.mark.usefixtures("settings")
def test_some_rows_are_rejected(engine: sa.Engine, springfield: Path, tmp_path: Path) -> None:
    with engine.begin() as connection:
        connection.execute(sa.insert(feeds).values(name="springfield", format="oneroster", hold_rejected_percent=100))
    both(*(cell("enrollments", line, "role", "pupil") for line in range(2, 18)), column("users", "sms", "1"))(
        springfield
    )
    cell("enrollments", 18, "role", "p" * 100)(springfield)
    rejects = tmp_path / "rejects.csv"
    result = run("--feed", "springfield", "--rejects", rejects, springfield)
    assert result.exit_code == ExitCode.PARTIAL
    assert "springfield: partial (" in result.stdout
    assert "17 rows are rejected:\nenrollments.csv, line 2, column role: must be one of" in result.stderr
    written = list(csv.DictReader(rejects.read_text(encoding="utf-8").splitlines()))
    assert [row["line"] for row in written] == [str(line) for line in range(2, 19)]
    assert written[0].keys() == set(REJECTS_HEADER)
    assert written[-1]["value"] == "p" * 79 + "…"
    stored = list(snapshot(engine, sync_rejections).values())
    assert [(row["line"], row["header"], row["value"]) for row in stored] == [
        (int(row["line"]), row["column"], row["value"]) for row in written
    ]
    [row] = snapshot(engine, sync_runs).values()
    assert (row["outcome"], row["rejected"]) == ("partial", 17)


@pytest.mark.usefixtures("settings")
def test_rows_are_rejected_and_exports_refused(springfield: Path) -> None:
    """One word for each, in the table, the text and the help."""
    cell("users", 6, "enabledUser", "maybe")(springfield)
    shown = run("--feed", "springfield", springfield)
    assert ("rejected" in shown.stdout, "refused" in shown.stdout + shown.stderr) == (True, False)
    assert "rows that are refused" not in run("--help").stdout


@pytest.mark.usefixtures("settings")
def test_a_line_per_step_where_there_is_no_terminal(springfield: Path) -> None:
    result = run("--feed", "springfield", springfield)
    reported = [json.loads(line) for line in result.stderr.splitlines()]
    assert [(line["feed"], line["step"]) for line in reported] == [("springfield", step) for step in STEPS]
    assert all(line["seconds"] >= 0 for line in reported)
    assert run("--feed", "springfield", "--json", springfield).stderr == ""


@pytest.mark.usefixtures("settings")
def test_a_bar_on_a_terminal(springfield: Path, settings: str) -> None:
    """In a terminal of its own: the bar names the steps, the table stays."""
    command = [sys.executable, "-m", "sync_scripts.load_oneroster", "--feed", "springfield", str(springfield)]
    master, slave = pty.openpty()
    # Its own terminal needs none of this one's settings.
    environment = {**os.environ, "ROSTER_DATABASE_URL": settings, "TERM": "xterm", "COLUMNS": "120"}
    with subprocess.Popen(command, env=environment, stdout=slave, stderr=slave, stdin=slave) as process:
        os.close(slave)
        shown = b""
        # A terminal whose last writer is gone says so with an error.
        with contextlib.suppress(OSError):
            while part := os.read(master, 65_536):
                shown += part
    os.close(master)
    assert process.returncode == ExitCode.LOADED
    text = shown.decode()
    assert "springfield: " in text
    assert "\x1b[" in text
    assert '"step"' not in text
    assert "demographics" in text


@pytest.mark.usefixtures("settings")
def test_a_dry_run_changes_nothing(engine: sa.Engine, springfield: Path) -> None:
    reported = json.loads(run("--feed", "springfield", "--dry-run", "--json", springfield).stdout)
    assert (reported["counts"]["users"]["added"], reported["outcome"], reported["dry_run"]) == (15, "done", True)
    assert (reported["run"], reported["stamp"], reported["revision"]) == (None, None, None)
    header("users", "role", "function")(springfield)
    assert run("--feed", "springfield", "--dry-run", springfield).exit_code == ExitCode.REFUSED
    assert snapshot(engine, sync_runs) == snapshot(engine, feeds) == snapshot(engine, users) == {}


@pytest.mark.usefixtures("settings")
def test_locked(engine: sa.Engine, springfield: Path) -> None:
    with engine.connect() as other, hold_lock(other, "springfield"):
        result = run("--feed", "springfield", "--json", springfield)
    assert result.exit_code == ExitCode.LOCKED
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
    assert result.exit_code == ExitCode.UNAVAILABLE
    assert words in result.stderr
    assert "secret" not in result.stderr


def test_a_database_without_tables(server_url: str, springfield: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROSTER_DATABASE_URL", server_url)
    result = run("--feed", "springfield", springfield)
    assert result.exit_code == ExitCode.UNAVAILABLE
    assert "roster db upgrade" in result.stderr


@pytest.mark.parametrize("arguments", [[], ["--feed", "x"], ["path"], ["--feed", "x", "path", "--force"]])
def test_wrong_usage(arguments: list[str]) -> None:
    assert run(*arguments).exit_code == ExitCode.REFUSED


@pytest.mark.usefixtures("settings")
def test_an_export_of_a_moment_ago_waits_unless_the_operator_says_now(
    springfield: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROSTER_EXPORT_AGE_MINUTES", "5")
    (springfield / "orgs.csv").touch()
    waiting = run("--feed", "springfield", springfield)
    assert waiting.exit_code == ExitCode.INCOMPLETE
    assert "loaded 5 minutes after the last write; `--now` loads it at once" in waiting.stderr
    assert run("--feed", "springfield", "--dry-run", springfield).exit_code == ExitCode.LOADED
    assert run("--feed", "springfield", "--now", springfield).exit_code == ExitCode.LOADED


@pytest.mark.usefixtures("settings")
def test_an_export_that_is_the_same_for_days_is_not_called_held(engine: sa.Engine, springfield: Path) -> None:
    """No approval applies it: its run is not held."""
    run("--feed", "springfield", springfield)
    with engine.begin() as connection:
        connection.execute(sa.update(feeds).values(path=str(springfield)))
        connection.execute(sa.text("UPDATE sync_runs SET started_at = started_at - interval '9 days'"))
    stale = run("--feed", "springfield", "--now", springfield)
    assert stale.exit_code == ExitCode.STALE
    assert stale.stderr.endswith("\nstale: the export has been the same for 9 days\n")
    assert "approve" not in stale.output


def test_help_shows_every_exit_code() -> None:
    assert (
        set(MEANINGS)
        == set(ExitCode)
        == {
            ExitCode.LOADED,
            ExitCode.PARTIAL,
            ExitCode.HELD,
            ExitCode.STALE,
            *CODES.values(),
        }
    )
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
