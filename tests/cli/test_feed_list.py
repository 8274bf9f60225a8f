"""`roster feed list` and `roster feed rename`: the latest runs of a feed, and the names that it may take."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.feeds.sync_lock import hold_lock
from roster_service.settings import Settings
from sync_scripts.engine.load import Options, load
from sync_scripts.reading.registry import FAMILIES
from sync_scripts.reading.rejections import RefusedExportError
from tests.cli.conftest import Roster
from tests.postgres.loaded import load_first
from tests.sync.conftest import EXPORTS, SHELBYVILLE, SPRINGFIELD
from tests.sync.export_changes import header, without_rows

Answer = Callable[..., Any]


@pytest.fixture
def springfield(tmp_path: Path) -> Path:
    """A copy of the small 1.1 export."""
    return Path(shutil.copytree(EXPORTS / SPRINGFIELD, tmp_path / SPRINGFIELD))


def test_the_last_good_run_stays_beside_a_refused_and_a_held_one(
    answer: Answer, roster: Roster, engine: sa.Engine, springfield: Path, tmp_path: Path
) -> None:
    load_first(engine, "springfield", springfield)
    [good] = answer("feed", "list")
    assert (good["last_outcome"], good["last_good_run"], good["held_run"]) == ("done", good["last_run"], None)
    assert good["age_seconds"] >= 0
    without_rows("enrollments", "spr-enr-01", "spr-enr-02", "spr-enr-03")(springfield)
    load(engine, "springfield", springfield, options=Options(Settings(home=tmp_path, hold_least_records=3)))
    header("orgs", "name", "title")(springfield)
    with pytest.raises(RefusedExportError):
        load(engine, "springfield", springfield)
    [now] = answer("feed", "list")
    assert (now["last_outcome"], now["last_good_run"], now["held_run"]) == ("refused", good["last_good_run"], 2)
    assert "refused" in roster("feed", "list").stdout


def test_a_pipe_gets_whole_cells(answer: Answer, roster: Roster) -> None:
    path = f"/exports/{'long folder/' * 30}end"
    answer("feed", "add", "springfield", "--format", "oneroster", "--path", path)
    assert path in roster("feed", "list").stdout.splitlines()[1]


def test_a_renamed_feed_keeps_its_records_and_runs(answer: Answer, engine: sa.Engine, springfield: Path) -> None:
    load_first(engine, "springfield", springfield)
    assert answer("feed", "rename", "springfield", "spr")["name"] == "spr"
    assert load(engine, "spr", springfield).outcome == "unchanged"
    assert [run["feed"] for run in answer("sync", "list")] == ["spr", "spr"]


def test_a_feed_whose_ids_have_its_name_keeps_it(answer: Answer, roster: Roster, engine: sa.Engine) -> None:
    load_first(engine, "clever", EXPORTS / "shelbyville-clever", family=FAMILIES["clever"])
    done = roster("feed", "rename", "clever", "other")
    assert (done.exit_code, "keeps its name" in done.stderr) == (1, True)
    assert [it["name"] for it in answer("feed", "list")] == ["clever"]


@pytest.mark.parametrize(
    ("name", "new", "reason"),
    [
        pytest.param("none", "new", "there is no feed none", id="unknown"),
        pytest.param("springfield", "other", "there is a feed other already", id="taken"),
        pytest.param("springfield", " x", "a feed's name has 1 to 63 printable characters", id="bad name"),
    ],
)
def test_a_rename_is_refused(answer: Answer, roster: Roster, name: str, new: str, reason: str) -> None:
    for feed in ("springfield", "other"):
        answer("feed", "add", feed, "--format", "oneroster")
    done = roster("feed", "rename", name, new)
    assert (done.exit_code, reason in done.stderr) == (1, True)


def test_no_feed_is_renamed_while_a_sync_is_under_way(answer: Answer, roster: Roster, engine: sa.Engine) -> None:
    load_first(engine, "shelbyville", EXPORTS / SHELBYVILLE)
    with engine.connect() as connection, hold_lock(connection, "shelbyville"):
        done = roster("feed", "rename", "shelbyville", "new")
    assert "a sync is under way" in done.stderr
    assert [it["name"] for it in answer("feed", "list")] == ["shelbyville"]
