"""A feed exists once a run of it was applied: a refused or held first run adds none."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Engine

from roster_service.access.feeds import list_feeds
from roster_service.db.held_runs import HELD
from roster_service.db.pauses import store_pause
from roster_service.db.run_history import list_runs
from roster_service.errors import CommandError
from roster_service.settings import Settings
from sync_scripts.engine.load import Options, load
from sync_scripts.engine.run_record import Approval
from sync_scripts.reading.registry import FAMILIES
from sync_scripts.reading.rejections import RefusedExportError
from tests.actors import TESTER
from tests.sync.conftest import EXPORTS
from tests.sync.export_changes import cell_of, header


def list_names(engine: Engine) -> list[str]:
    """The feeds that exist."""
    with engine.connect() as connection:
        return [feed.name for feed in list_feeds(connection)]


def test_a_refused_first_run_is_remembered_and_adds_no_feed(engine: Engine, springfield: Path) -> None:
    header("orgs", "name", "title")(springfield)
    with pytest.raises(RefusedExportError):
        load(engine, "sprngfield", springfield)
    assert list_names(engine) == []
    with engine.connect() as connection:
        assert [(run.feed, run.outcome) for run in list_runs(connection, None, 9)] == [("sprngfield", "refused")]
        with pytest.raises(CommandError, match="there is no feed sprngfield"):
            store_pause(connection, "sprngfield", None)


def test_the_name_of_a_refused_first_run_is_free_for_another_family(engine: Engine, springfield: Path) -> None:
    header("orgs", "name", "title")(springfield)
    with pytest.raises(RefusedExportError):
        load(engine, "feed", springfield)
    report = load(engine, "feed", EXPORTS / "shelbyville-clever", family=FAMILIES["clever"])
    assert "the feed feed is new" in report.notices
    assert list_names(engine) == ["feed"]


def test_a_held_first_run_adds_the_feed_when_it_is_approved(engine: Engine, springfield: Path, tmp_path: Path) -> None:
    cell_of("users", "spr-student-1", "enabledUser", "maybe")(springfield)
    settings = Settings(home=tmp_path / "home", hold_least_records=3)
    held = load(engine, "feed", springfield, options=Options(settings))
    assert (held.outcome, list_names(engine)) == (HELD, [])
    [kept] = (tmp_path / "home").glob("held/*/*")
    assert load(engine, "feed", kept, options=Options(settings, approval=Approval(held.run, TESTER))).outcome == "done"
    assert list_names(engine) == ["feed"]


def test_a_dry_run_of_a_new_feed_leaves_nothing(engine: Engine, springfield: Path) -> None:
    load(engine, "feed", springfield, options=Options(dry_run=True))
    assert list_names(engine) == []
