"""A feed is there from its first run on, whatever became of it: it is `tried` until a run of it was applied."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from roster_service.db.tables import changes
from roster_service.feeds.feeds import change_feed, list_feeds
from roster_service.feeds.held_runs import HELD
from roster_service.settings import Settings
from sync_scripts.engine.feed_removal import remove_feed
from sync_scripts.engine.load import Options, load
from sync_scripts.engine.nightly_feeds import list_nightly_feeds
from sync_scripts.engine.run_record import Approval
from sync_scripts.reading.registry import FAMILIES
from sync_scripts.reading.rejections import RefusedExportError
from tests.actors import TESTER
from tests.sync.conftest import EXPORTS
from tests.sync.export_changes import cell_of, header


def list_states(engine: sa.Engine) -> dict[str, str]:
    """The feeds and their states."""
    with engine.connect() as connection:
        return {feed.name: feed.state for feed in list_feeds(connection, None)}


def test_the_feed_of_a_refused_first_run_can_be_set_and_removed(engine: sa.Engine, springfield: Path) -> None:
    header("orgs", "name", "title")(springfield)
    with pytest.raises(RefusedExportError):
        load(engine, "sprngfield", springfield)
    assert list_states(engine) == {"sprngfield": "tried"}
    with engine.begin() as connection:
        change_feed(connection, TESTER, "sprngfield", {"path": str(springfield)})
        [changed] = list_feeds(connection, None, without_records=True)
        assert (changed.path, changed.state) == (str(springfield), "tried")
        rows = sa.select(changes.c.before, changes.c.after).where(changes.c.verb == "feed set")
        assert [tuple(row) for row in connection.execute(rows)] == [({"path": None}, {"path": str(springfield)})]
    assert [feed.name for feed in list_nightly_feeds(engine)] == ["sprngfield"]
    remove_feed(engine, TESTER, "sprngfield", Settings(), at_once=False)
    # It never had a record, so nothing of it is listed.
    assert list_states(engine) == {}


def test_the_name_of_a_refused_first_run_is_free_for_another_family(engine: sa.Engine, springfield: Path) -> None:
    header("orgs", "name", "title")(springfield)
    with pytest.raises(RefusedExportError):
        load(engine, "feed", springfield)
    report = load(engine, "feed", EXPORTS / "shelbyville-clever", family=FAMILIES["clever"])
    assert "the feed feed is new" in report.notices
    assert list_states(engine) == {"feed": "added"}


def test_a_held_first_run_adds_the_feed_when_it_is_approved(
    engine: sa.Engine, springfield: Path, tmp_path: Path
) -> None:
    cell_of("users", "spr-student-1", "enabledUser", "maybe")(springfield)
    settings = Settings(home=tmp_path / "home", hold_least_records=3)
    held = load(engine, "feed", springfield, options=Options(settings))
    assert (held.outcome, list_states(engine)) == (HELD, {"feed": "tried"})
    [kept] = (tmp_path / "home").glob("held/*/*")
    assert load(engine, "feed", kept, options=Options(settings, approval=Approval(held.run, TESTER))).outcome == "done"
    assert list_states(engine) == {"feed": "added"}


def test_a_dry_run_of_a_new_feed_leaves_nothing(engine: sa.Engine, springfield: Path) -> None:
    load(engine, "feed", springfield, options=Options(dry_run=True))
    assert list_states(engine) == {}
