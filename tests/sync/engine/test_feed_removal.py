"""The end of a feed: its records are tombstones that can come back, or they are gone; other feeds stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.accounts import vendor_rights, vendors
from roster_service.accounts.transparency import publish, set_published
from roster_service.db.tables import (
    ROSTER_TABLES,
    feeds,
    published_vendors,
    sync_changes,
    sync_rejections,
    sync_runs,
)
from roster_service.errors import CommandError
from roster_service.feeds.change_history import find_changes
from roster_service.feeds.run_history import TYPES, RunDetails, find_run
from roster_service.settings import Settings
from sync_scripts.engine.feed_removal import remove_feed
from sync_scripts.engine.load import Options, load
from sync_scripts.engine.nightly_feeds import list_nightly_feeds
from sync_scripts.purge import purge
from tests.actors import TESTER
from tests.postgres.loaded import load_districts
from tests.sync.conftest import SPRINGFIELD, read_state, state
from tests.sync.export_changes import cell_of, without_rows

SETTINGS = Settings()


@pytest.fixture
def loaded(engine: sa.Engine, copy_export: Callable[[str], Path]) -> Path:
    """Two loaded feeds, and the export of the first one."""
    load_districts(engine, ("springfield", "shelbyville"))
    return copy_export(SPRINGFIELD)


def list_others(engine: sa.Engine) -> dict[Any, Any]:
    """The records and parts of the second feed."""
    return {
        table: {key: row for key, row in rows.items() if "shv-" in str(key)} for table, rows in state(engine).items()
    }


def find_latest_run(engine: sa.Engine) -> RunDetails:
    """The latest run, as the commands show it."""
    with engine.connect() as connection:
        return find_run(connection, connection.scalar(sa.select(sa.func.max(sync_runs.c.id))) or 0)


def test_the_records_of_a_removed_feed_become_tombstones_in_one_run(engine: sa.Engine, loaded: Path) -> None:
    others, before = list_others(engine), read_state(engine)
    report = remove_feed(engine, TESTER, "springfield", SETTINGS, at_once=False)
    for table in ROSTER_TABLES:
        mine = [row for key, row in state(engine)[table].items() if "spr-" in str(key)]
        assert {(row["status"], row["date_last_modified"]) for row in mine} == {("tobedeleted", report.stamp)}
        assert report.counts[TYPES[table.name]].tombstoned == len(mine)
    assert list_others(engine) == others
    assert read_state(engine).revision > before.revision
    assert read_state(engine).as_of == report.stamp
    run = find_latest_run(engine)
    assert (run.run, run.feed, run.outcome, run.counts["users"]["tombstoned"]) == (
        report.run,
        "springfield",
        "done",
        15,
    )
    with engine.connect() as connection:
        changes = find_changes(connection, run.run)
        assert changes is not None
        assert changes.count(connection, "users") == {"users": {"tombstoned": 15}}


def test_the_purge_deletes_the_records_after_the_retention(engine: sa.Engine, loaded: Path) -> None:
    remove_feed(engine, TESTER, "springfield", SETTINGS, at_once=False)
    assert not any(purge(engine, 7).values())
    purge(engine, -1)
    assert not [key for rows in state(engine).values() for key in rows if "spr-" in str(key)]


@pytest.mark.parametrize("is_purged", [False, True])
def test_at_once_nothing_stays_of_the_records(engine: sa.Engine, loaded: Path, is_purged: bool) -> None:
    cell_of("users", "spr-student-1", "enabledUser", "maybe")(loaded)
    cell_of("users", "spr-student-2", "givenName", "Other")(loaded)
    load(engine, "springfield", loaded, options=Options(allow_mass_delete=True))
    others = list_others(engine)
    if is_purged:
        remove_feed(engine, TESTER, "springfield", SETTINGS, at_once=False)
        purge(engine, -1)
    report = remove_feed(engine, TESTER, "springfield", SETTINGS, at_once=True)
    assert state(engine) == others
    assert report.purged["users"] == find_latest_run(engine).counts["users"]["purged"] == (0 if is_purged else 15)
    assert is_purged or read_state(engine).deletions_since == read_state(engine).as_of == report.stamp
    with engine.connect() as connection:
        for table in (sync_rejections, sync_changes):
            assert connection.scalar(sa.select(sa.func.count()).select_from(table)) == 0


@pytest.mark.parametrize("is_purged", [False, True])
def test_a_vendor_without_a_district_any_more_is_published_no_more(
    engine: sa.Engine, loaded: Path, is_purged: bool
) -> None:
    with engine.begin() as connection:
        vendors.add_vendor(connection, TESTER, "reading@vendor.example", "Reading")
        vendor_rights.grant(connection, TESTER, "reading@vendor.example", "spr-district", ())
        set_published(connection, TESTER, True)
        publish(connection)
        assert connection.scalars(sa.select(published_vendors.c.district_id)).all() == ["spr-district"]
    remove_feed(engine, TESTER, "springfield", SETTINGS, at_once=not is_purged)
    if is_purged:
        purge(engine, -1)
    with engine.connect() as connection:
        assert connection.scalars(sa.select(published_vendors.c.district_id)).all() == []


def test_the_tombstones_of_a_removed_feed_can_be_deleted_at_once(engine: sa.Engine, loaded: Path) -> None:
    remove_feed(engine, TESTER, "springfield", SETTINGS, at_once=False)
    with pytest.raises(CommandError, match="was removed already"):
        remove_feed(engine, TESTER, "springfield", SETTINGS, at_once=False)
    assert remove_feed(engine, TESTER, "springfield", SETTINGS, at_once=True).purged["users"] == 15


@pytest.mark.parametrize("at_once", [False, True])
def test_a_dry_run_counts_and_changes_nothing(engine: sa.Engine, loaded: Path, at_once: bool) -> None:
    before = state(engine), read_state(engine), find_latest_run(engine)
    report = remove_feed(engine, TESTER, "springfield", SETTINGS, at_once=at_once, dry_run=True)
    assert (report.counts["users"].tombstoned, report.purged.get("users")) == (15, 15 if at_once else None)
    assert report.preview is not None
    [high] = [it for it in report.preview["schools"] if it["sourcedId"] == "spr-high"]
    assert high["name"] == "Springfield High School"
    assert high["counts"]["enrollments"] == {"vanishing": 9, "changing": 0, "active": 9}
    assert (state(engine), read_state(engine), find_latest_run(engine)) == before


def test_the_held_runs_and_the_digest_of_a_removed_feed_go(engine: sa.Engine, loaded: Path, tmp_path: Path) -> None:
    without_rows("enrollments", "spr-enr-01", "spr-enr-02", "spr-enr-03")(loaded)
    settings = Settings(home=tmp_path / "home", hold_least_records=3)
    assert load(engine, "springfield", loaded, options=Options(settings)).outcome == "held"
    remove_feed(engine, TESTER, "springfield", settings, at_once=False)
    assert not list((tmp_path / "home").rglob("*.csv"))
    with engine.connect() as connection:
        kept = sa.select(sync_runs.c.outcome, sync_runs.c.kept_digest).where(sync_runs.c.id == 3)
        assert connection.execute(kept).one() == ("discarded", None)
        assert connection.scalar(sa.select(feeds.c.last_digest).where(feeds.c.name == "springfield")) is None


def test_no_loader_brings_a_removed_feed_back(engine: sa.Engine, loaded: Path) -> None:
    with engine.begin() as connection:
        connection.execute(sa.update(feeds).values(path=str(loaded)))
    remove_feed(engine, TESTER, "springfield", SETTINGS, at_once=False)
    assert [feed.name for feed in list_nightly_feeds(engine)] == ["shelbyville"]
    with pytest.raises(CommandError, match="`roster feed add springfield` takes it back"):
        load(engine, "springfield", loaded)
    with engine.begin() as connection:
        connection.execute(sa.update(feeds).where(feeds.c.name == "springfield").values(state="added"))
    report = load(engine, "springfield", loaded)
    assert report.counts["users"].revived == 15
    assert all(count.revived == count.written for count in report.counts.values())


def test_an_unknown_feed_is_not_removed(engine: sa.Engine, loaded: Path) -> None:
    with pytest.raises(CommandError, match="there is no feed nobody"):
        remove_feed(engine, TESTER, "nobody", SETTINGS, at_once=True)


def test_a_feed_without_records_is_removed(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.execute(feeds.insert().values(name="empty", format="oneroster"))
    before = read_state(engine)
    assert remove_feed(engine, TESTER, "empty", SETTINGS, at_once=False).stamp is None
    assert read_state(engine) == before
    with engine.connect() as connection:
        assert connection.scalar(sa.select(feeds.c.state)) == "removed"
