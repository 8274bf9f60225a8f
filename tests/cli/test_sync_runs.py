"""`roster sync list`, `show` and `rejected`: what they show of runs and of rejected rows."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.db.tables import feeds, sync_rejections
from roster_service.feeds.run_history import COUNTS, STEPS
from roster_service.settings import PREFIX
from sync_scripts.engine.exit_codes import ExitCode
from sync_scripts.engine.load import load
from sync_scripts.reading.rejections import RefusedExportError, write_rejects
from tests.cli.conftest import Roster
from tests.postgres.loaded import load_first
from tests.sync.conftest import EXPORTS, SPRINGFIELD
from tests.sync.export_changes import cell_of, header

Answer = Callable[..., Any]
START = "from roster_service.cli import main; main()"
# A value that would turn the direction of the terminal, and that is markup of the library that prints tables.
VALUE = "\u202e[red]maybe"


@pytest.fixture
def export(tmp_path: Path) -> Path:
    """An export with a user who is rejected, and with the user an enrollment and demographics."""
    folder = Path(shutil.copytree(EXPORTS / SPRINGFIELD, tmp_path / "export"))
    cell_of("users", "spr-student-5", "enabledUser", VALUE)(folder)
    return folder


def test_the_runs_of_a_feed_are_listed(answer: Answer, engine: sa.Engine, export: Path) -> None:
    load(engine, "springfield", export)
    load(engine, "other", EXPORTS / "shelbyville-1.2")
    load(engine, "springfield", export)
    assert [(run["run"], run["feed"], run["outcome"]) for run in answer("sync", "list")] == [
        (3, "springfield", "partial"),
        (2, "other", "done"),
        (1, "springfield", "partial"),
    ]
    assert [run["run"] for run in answer("sync", "list", "--feed", "springfield")] == [3, 1]


def test_a_run_loads_every_feed_and_ends_as_the_script_does(
    database_url: str, engine: sa.Engine, export: Path, tmp_path: Path
) -> None:
    with engine.begin() as connection:
        rows = [
            {"name": name, "format": "oneroster", "path": str(path)}
            for name, path in {"springfield": export, "other": EXPORTS / "shelbyville-1.2"}.items()
        ]
        connection.execute(sa.insert(feeds), rows)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    environment |= {"ROSTER_DATABASE_URL": database_url, "ROSTER_EXPORT_AGE_MINUTES": "0", "ROSTER_HOME": str(tmp_path)}
    command = [sys.executable, "-c", START, "sync", "run", "--jobs", "2", "--wait"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert {line["feed"]: line["exit"] for line in lines if "outcome" in line and "feed" in line} == {
        "springfield": ExitCode.PARTIAL,
        "other": ExitCode.LOADED,
    }
    assert done.returncode == ExitCode.PARTIAL


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["list", "--feed", "none"], "there is no feed none; `roster feed list` shows all", id="list"),
        pytest.param(["show", "7"], "there is no run 7; `roster sync list` shows the runs", id="show"),
        pytest.param(["rejected", "7"], "there is no run 7; `roster sync list` shows the runs", id="rejected"),
    ],
)
def test_an_unknown_feed_or_run_is_refused(roster: Roster, arguments: list[str], message: str) -> None:
    done = roster("sync", *arguments)
    assert (done.exit_code, done.stdout, done.stderr) == (1, "", f"roster: {message}\n")


def test_a_run_is_shown_with_its_causes_and_without_values(
    answer: Answer, roster: Roster, engine: sa.Engine, export: Path
) -> None:
    report = load(engine, "springfield", export)
    shown = answer("sync", "show", "1")
    assert list(shown["seconds"]) == list(STEPS)
    assert list(shown["counts"].items()) == list(report.to_row()["counts"].items())
    assert list(shown["counts"]["users"]) == list(COUNTS)
    [cause] = shown["causes"]
    assert (cause["number"], cause["file"], cause["column"], cause["line"]) == (1, "users.csv", "enabledUser", 6)
    assert (cause["rows"], cause["consequences"]) == (1, shown["rejected"] - 1)
    assert [(it["kind"], it["cause"]) for it in shown["samples"]] == [("cause", 1), *[("consequence", 1)] * 2]
    text = roster("sync", "show", "1").stdout
    assert all(it in text for it in ("springfield", "compare", "enabledUser", "3 rejected rows by root cause"))
    assert not any(value in text + str(shown) for value in ("maybe", "spr-student-5", "الفاسي"))


def test_a_refused_export_is_shown_with_its_reason(
    answer: Answer, roster: Roster, engine: sa.Engine, export: Path
) -> None:
    header("orgs", "name", "title")(export)
    with pytest.raises(RefusedExportError):
        load(engine, "springfield", export)
    shown = answer("sync", "show", "1")
    assert (shown["outcome"], shown["counts"], shown["causes"]) == ("refused", {}, [])
    assert [it["file"] for it in shown["samples"]] == ["orgs.csv"] * shown["rejected"]
    assert shown["message"] == "orgs.csv, line 1, column name: is missing in the header (and 1 more reason)"
    assert f"message   {shown['message']}" in roster("sync", "show", "1").stdout


def test_rejected_rows_are_shown_with_their_values(
    answer: Answer, roster: Roster, engine: sa.Engine, export: Path
) -> None:
    load(engine, "springfield", export)
    root, *others = answer("sync", "rejected", "1")
    assert root == {
        "file": "users.csv",
        "line": 6,
        "column": "enabledUser",
        "value": VALUE,
        "reason": root["reason"],
        "sourcedId": "spr-student-5",
        "kind": "cause",
        "cause": 1,
        "records": [
            {
                "type": "users",
                "sourcedId": "spr-student-5",
                "own": True,
                "label": "محمد الفاسي",
                "in_roster": False,
            },
            {
                "type": "orgs",
                "sourcedId": "spr-high",
                "own": False,
                "label": root["records"][1]["label"],
                "in_roster": True,
            },
        ],
    }
    assert {(it["file"], it["kind"], it["cause"]) for it in others} == {
        ("enrollments.csv", "consequence", 1),
        ("demographics.csv", "consequence", 1),
    }
    text = roster("sync", "rejected", "1").stdout
    # No character of an export commands the terminal.
    assert r"\u202e[red]maybe" in text
    assert re.search(r"spr-enr-10 .* Statistics, Section 1, محمد الفاسي\n", text)


def test_the_file_of_rejected_rows_is_that_of_the_loader(
    roster: Roster, engine: sa.Engine, export: Path, tmp_path: Path
) -> None:
    report = load(engine, "springfield", export)
    of_loader, of_command = tmp_path / "loader.csv", tmp_path / "command.csv"
    with of_loader.open("w") as out:
        write_rejects(out, report.findings)
    done = roster("sync", "rejected", "1", "--csv", str(of_command))
    assert (done.exit_code, done.output) == (0, "")
    assert of_command.read_bytes() == of_loader.read_bytes()
    assert stat.S_IMODE(of_command.stat().st_mode) == 0o600
    printed = roster("sync", "rejected", "1", "--csv").stdout
    assert list(csv.reader(printed.splitlines()))[1][5] == "spr-student-5"


def test_rows_that_are_no_longer_stored_are_said_to_be_deleted(roster: Roster, engine: sa.Engine, export: Path) -> None:
    load(engine, "springfield", export)
    with engine.begin() as connection:
        connection.execute(sa.delete(sync_rejections))
    assert roster("sync", "rejected", "1").stdout == (
        "3 rows were rejected, and none of them is stored: a row is deleted after ROSTER_CHANGE_DAYS, and when a "
        "person whom it names is erased\n"
    )


def test_a_run_without_rejected_rows_says_so(answer: Answer, roster: Roster, engine: sa.Engine) -> None:
    load_first(engine, "springfield", EXPORTS / SPRINGFIELD)
    assert answer("sync", "rejected", "1") == []
    assert roster("sync", "rejected", "1").stdout == "no row was rejected\n"
