"""`--report`: the log of a package, for each way in which a run ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from roster_service.db.tables import feeds
from roster_service.feeds.sync_lock import hold_lock
from sync_scripts.engine.exit_codes import ExitCode
from sync_scripts.load_oneroster import main
from tests.sync.conftest import lend_engine
from tests.sync.export_changes import cell_of, header

FILES = {"orgs", "academicSessions", "courses", "classes", "users", "enrollments", "demographics"}


@pytest.fixture(autouse=True)
def lent_engine(engine: sa.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the loader use the engine of the test."""
    lend_engine(monkeypatch, engine)


def load_with_log(path: Path, *options: str) -> tuple[int, dict[str, Any]]:
    """Runs the loader; returns its exit code and the log that it wrote."""
    out = path.parent / "log.json"
    done = CliRunner().invoke(main, ["--feed", "feed", "--report", str(out), *options, str(path)])
    return done.exit_code, json.loads(out.read_text(encoding="utf-8"))


def test_a_loaded_package_lists_its_files(springfield: Path) -> None:
    code, log = load_with_log(springfield)
    assert (code, log["outcome"], log["package"], log["rejected"]) == (0, "loaded", "springfield-1.1", [])
    assert set(log["imported"]) == {f"{name}.csv" for name in FILES}
    assert log["date"].endswith("Z")
    # The same bytes again: the files are in the roster already.
    code, again = load_with_log(springfield)
    assert (code, again["outcome"], again["imported"]) == (0, "loaded", log["imported"])


def test_rejected_rows_are_listed_by_file_without_values(springfield: Path) -> None:
    cell_of("users", "spr-student-5", "enabledUser", "perhaps")(springfield)
    code, log = load_with_log(springfield)
    assert (code, log["outcome"]) == (ExitCode.PARTIAL, "partial")
    assert "users.csv" in log["imported"]
    rejected = {it["file"]: it for it in log["rejected"]}
    assert rejected.keys() == {"users.csv", "enrollments.csv", "demographics.csv"}
    assert not any(it["whole"] for it in rejected.values())
    [reason] = rejected["users.csv"]["reasons"]
    assert (reason["line"], reason["column"], reason["rows"]) == (6, "enabledUser", 1)
    assert "perhaps" not in str(log)


def test_a_refused_package_imports_no_file(springfield: Path) -> None:
    header("orgs", "name", "title")(springfield)
    code, log = load_with_log(springfield)
    assert (code, log["outcome"], log["imported"]) == (ExitCode.REFUSED, "refused", [])
    [rejected] = log["rejected"]
    assert (rejected["file"], rejected["whole"]) == ("orgs.csv", True)
    assert [reason["rows"] for reason in rejected["reasons"]] == [0, 0]


def test_a_missing_package_is_no_refused_one(tmp_path: Path) -> None:
    code, log = load_with_log(tmp_path / "nothing")
    assert (code, log["outcome"], log["imported"]) == (ExitCode.STALE, "missing", [])


def test_a_dry_run_imports_no_file(springfield: Path) -> None:
    _, log = load_with_log(springfield, "--dry-run")
    assert (log["dry_run"], log["imported"]) == (True, [])


def test_a_run_that_does_not_begin_says_why(engine: sa.Engine, springfield: Path) -> None:
    with engine.connect() as connection, hold_lock(connection, "feed"):
        code, log = load_with_log(springfield)
    assert (code, log["outcome"], log["imported"]) == (ExitCode.LOCKED, "locked", [])
    assert "is under way" in log["message"]
    with engine.begin() as connection:
        connection.execute(sa.insert(feeds).values(name="feed", format="clever"))
    code, log = load_with_log(springfield)
    assert (code, log["message"]) == (ExitCode.REFUSED, "the feed feed takes clever, not oneroster")


def test_a_log_that_cannot_be_opened_changes_nothing(springfield: Path) -> None:
    done = CliRunner().invoke(main, ["--feed", "feed", "--report", str(springfield / "no" / "log"), str(springfield)])
    assert done.exit_code == ExitCode.REFUSED
    code, log = load_with_log(springfield)
    assert (code, log["run"]) == (0, 1)
