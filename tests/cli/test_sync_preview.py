"""`roster sync preview` and the preview of a held run: what would vanish, and that nothing is changed."""

from __future__ import annotations

import csv
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.settings import Settings
from sync_scripts.engine.load import Options, load
from tests.cli.conftest import Roster
from tests.postgres.loaded import load_first
from tests.sync.conftest import EXPORTS, SPRINGFIELD, state
from tests.sync.export_changes import cell_of, header, with_row, without_rows

Answer = Callable[..., Any]
# The users who vanish and change, by grade and role: an aide, and a student of the third grade.
USERS = {
    "03": {"vanishing": 0, "changing": 1, "active": 3},
    "aide": {"vanishing": 1, "changing": 0, "active": 1},
    "student": {"vanishing": 0, "changing": 1, "active": 6},
}
LOST = ("spr-enr-13", "spr-enr-14", "spr-enr-01")


@pytest.fixture
def later(engine: sa.Engine, tmp_path: Path) -> Path:
    """An export of a loaded feed in which some records are gone and one is changed."""
    folder = Path(shutil.copytree(EXPORTS / SPRINGFIELD, tmp_path / SPRINGFIELD))
    load_first(engine, "springfield", folder)
    without_rows("enrollments", *LOST)(folder)
    without_rows("users", "spr-aide-1")(folder)
    without_rows("enrollments", *LOST, "spr-enr-08")(folder)
    cell_of("users", "spr-student-1", "givenName", "Zoe")(folder)
    with_row("orgs", sourcedId="new", name="New", type="school")(folder)
    return folder


def list_vanishing(preview: dict[str, Any]) -> dict[str, dict[str, tuple[int, int]]]:
    """The counts by school or class."""
    return {
        it["sourcedId"]: {kind: (count["vanishing"], count["active"]) for kind, count in it["counts"].items()}
        for place in ("schools", "classes")
        for it in preview[place]
    }


def hold_preview(preview: dict[str, Any]) -> None:
    """Holds the preview of `later` to its changes."""
    assert list_vanishing(preview) == {
        "spr-high": {"enrollments": (2, 9)},
        "spr-elementary": {"enrollments": (2, 8), "users": (1, 7)},
        "spr-class-chem-1": {"enrollments": (2, 4)},
        "spr-class-math3-a": {"enrollments": (1, 4)},
        "spr-class-homeroom-3": {"enrollments": (1, 4)},
    }
    users = {it.get("grade") or it["role"]: it["counts"]["users"] for it in (*preview["grades"], *preview["roles"])}
    assert users == USERS
    elementary = next(it for it in preview["schools"] if it["sourcedId"] == "spr-elementary")
    assert elementary["counts"]["users"] == {"vanishing": 1, "changing": 1, "active": 7}
    assert preview["classes"][0]["title"] == "Chemistry: Acid' AND 'Base"
    samples = {(it["type"], it["change"], it["sourcedId"]): (it["name"], it["fields"]) for it in preview["samples"]}
    renamed = {"givenName": {"before": "Zoë", "after": "Zoe"}}
    assert samples["users", "changed", "spr-student-1"] == ("Zoë O'Brien", renamed)
    assert samples["users", "tombstoned", "spr-aide-1"][1] == {}
    assert samples["enrollments", "tombstoned", "spr-enr-13"][0].startswith("student: ")
    assert " in Chemistry: Acid' AND 'Base" in samples["enrollments", "tombstoned", "spr-enr-13"][0]
    assert samples["orgs", "added", "new"] == ("New", {})


def test_a_preview_shows_the_run_and_changes_nothing(answer: Answer, engine: sa.Engine, later: Path) -> None:
    before = state(engine)
    report = answer("sync", "preview", str(later), "--feed", "springfield")
    hold_preview(report["preview"])
    assert state(engine) == before
    assert len(answer("sync", "list")) == 1
    written = load(engine, "springfield", later)
    assert report["counts"] == written.to_row()["counts"]


def test_a_held_run_shows_what_would_vanish(
    answer: Answer, roster: Roster, engine: sa.Engine, later: Path, tmp_path: Path
) -> None:
    held = load(engine, "springfield", later, options=Options(Settings(home=tmp_path, hold_least_records=3)))
    assert held.outcome == "held"
    hold_preview(answer("sync", "show", "2")["preview"])
    text = roster("sync", "show", "2").stdout
    assert all(it in text for it in ("Springfield High School", "2 of 9", "roster sync approve 2"))


@pytest.mark.usefixtures("scripts_in_process")
def test_all_changes_are_written_to_a_file(roster: Roster, engine: sa.Engine, later: Path, tmp_path: Path) -> None:
    path = tmp_path / "changes.csv"
    done = roster("sync", "preview", str(later), "--feed", "springfield", "--csv", str(path))
    assert (done.exit_code, done.stderr) == (0, "")
    with path.open(newline="") as file:
        written = list(csv.reader(file))
    assert ["users", "spr-student-1", "changed", "givenName", "Zoë", "Zoe"] in written
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    load(engine, "springfield", later)
    applied = roster("sync", "changes", "2", "--csv").stdout
    assert sorted(csv.reader(applied.splitlines())) == sorted(written)


@pytest.mark.usefixtures("scripts_in_process")
def test_the_preview_of_a_new_feed_adds_no_feed(answer: Answer, roster: Roster, engine: sa.Engine) -> None:
    path = str(EXPORTS / SPRINGFIELD)
    refused = roster("sync", "preview", path, "--feed", "new")
    assert (refused.exit_code, refused.stderr) == (
        1,
        "roster: there is no feed new; name its --format to preview its first run\n",
    )
    report = answer("sync", "preview", path, "--feed", "new", "--format", "oneroster")
    assert (report["counts"]["users"]["added"], report["preview"]["schools"]) == (15, [])
    assert (answer("feed", "list"), answer("sync", "list")) == ([], [])


@pytest.mark.usefixtures("scripts_in_process")
def test_a_refused_export_says_why(roster: Roster, engine: sa.Engine, later: Path) -> None:
    header("orgs", "name", "title")(later)
    done = roster("sync", "preview", str(later), "--feed", "springfield")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("roster: the export would not be loaded:\norgs.csv, line 1, column ")
