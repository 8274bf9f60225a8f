"""Feeds beside each other, versions after each other, runs at the same time, and a database that fails."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from roster_service.db import tables
from roster_service.errors import CommandError, DatabaseUnavailableError
from roster_service.feeds.sync_lock import LockedError, hold_lock
from sync_scripts.applying.changes import Counts
from sync_scripts.engine.load import Options, load
from sync_scripts.reading.rejections import RefusedExportError
from tests.postgres.loaded import load_first
from tests.sync.conftest import describe, read_state, snapshot, state
from tests.sync.export_changes import cell_of, with_row


def test_feeds_leave_each_other_alone(engine: sa.Engine, springfield: Path, shelbyville: Path) -> None:
    load_first(engine, "springfield", springfield)
    before = snapshot(engine, tables.users)
    load(engine, "shelbyville", shelbyville)
    after = snapshot(engine, tables.users)
    assert {key: after[key] for key in before} == before
    assert len(after) == 15 + 11
    assert load(engine, "springfield", springfield).outcome == "unchanged"


@pytest.mark.shows(
    "Exports",
    "An id belongs to the feed that brought it, and a reference does not reach into another feed.",
)
def test_an_id_of_another_feed_is_refused(engine: sa.Engine, springfield: Path, shelbyville: Path) -> None:
    load_first(engine, "springfield", springfield)
    before = snapshot(engine, tables.orgs)["spr-high"]
    with_row("orgs", sourcedId="spr-high", name="Mine", type="school", parentSourcedId="shv-district")(shelbyville)
    report = load(engine, "shelbyville", shelbyville)
    words = "orgs.csv, line 6, column sourcedId: belongs to the feed springfield (found 'spr-high')"
    assert describe(report.findings) == words
    assert report.counts["orgs"] == Counts(added=4, rejected=1)
    assert snapshot(engine, tables.orgs)["spr-high"] == before


def read_refusal_of_another_feed(engine: sa.Engine, path: Path) -> list[str]:
    """The reasons why the feed `other` refuses an export; checks that nothing was loaded."""
    before = state(engine)
    with pytest.raises(RefusedExportError) as caught:
        load(engine, "other", path)
    assert state(engine) == before
    return describe(caught.value.findings).splitlines()


def test_an_export_of_another_feed_is_refused(engine: sa.Engine, springfield: Path) -> None:
    load_first(engine, "springfield", springfield)
    words = read_refusal_of_another_feed(engine, springfield)
    assert words == ["orgs.csv: every org belongs to the feed springfield"]


def test_an_export_of_two_other_feeds_is_refused(engine: sa.Engine, springfield: Path, shelbyville: Path) -> None:
    load_first(engine, "springfield", springfield)
    load(engine, "shelbyville", shelbyville)
    with_row("orgs", sourcedId="shv-north", name="Mine", type="school", parentSourcedId="spr-district")(springfield)
    words = read_refusal_of_another_feed(engine, springfield)
    assert sorted(words) == [f"orgs.csv: every org belongs to the feed {it}" for it in ("shelbyville", "springfield")]


@pytest.mark.shows(
    "Exports",
    "An id belongs to the feed that brought it, and a reference does not reach into another feed.",
)
def test_refs_do_not_reach_into_another_feed(engine: sa.Engine, springfield: Path, shelbyville: Path) -> None:
    load_first(engine, "springfield", springfield)
    cell_of("courses", "shv-course-art", "orgSourcedId", "spr-district")(shelbyville)
    cell_of("orgs", "shv-north", "parentSourcedId", "spr-district")(shelbyville)
    assert "names no row of orgs.csv (found 'spr-district')" in describe(
        load(engine, "shelbyville", shelbyville).findings
    )
    # Nor does the school lie below the only district of its own feed, which it does not name.
    assert snapshot(engine, tables.orgs)["shv-north"]["parent_id"] is None


def test_from_1_1_to_1_2(engine: sa.Engine, springfield: Path, shelbyville: Path) -> None:
    """A feed may change its version; what the new export lacks is gone."""
    load_first(engine, "feed", springfield)
    report = load(engine, "feed", shelbyville, options=Options(allow_mass_delete=True))
    assert report.counts["users"] == Counts(added=11, tombstoned=15)


def test_from_1_2_to_1_1(engine: sa.Engine, springfield: Path, shelbyville: Path) -> None:
    """What 1.1 cannot say is not left over from 1.2."""
    load_first(engine, "feed", shelbyville)
    for path in springfield.glob("*.csv"):
        path.write_bytes(path.read_bytes().replace(b"spr-student-1", b"shv-student-1"))
    report = load(engine, "feed", springfield, options=Options(allow_mass_delete=True))
    assert report.counts["users"] == Counts(added=14, changed=1, tombstoned=10)
    user = snapshot(engine, tables.users)["shv-student-1"]
    assert (user["pronouns"], user["user_master_identifier"], user["preferred_first_name"]) == (None, None, None)
    assert not any(key[0] == "shv-student-1" for key in snapshot(engine, tables.user_profiles))


def test_a_database_that_gives_up(engine: sa.Engine, springfield: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_first(engine, "feed", springfield)
    before, roster = state(engine), read_state(engine)
    cell_of("users", "spr-student-1", "givenName", "Zoey")(springfield)

    def die(connection: sa.Connection, *_: object, **_state: object) -> int:
        connection.execute(sa.text("SELECT pg_terminate_backend(pg_backend_pid())"))
        return 0

    with monkeypatch.context() as patch:
        patch.setattr("sync_scripts.engine.load.publish", die)
        with pytest.raises(DatabaseUnavailableError, match="the database gave up"):
            load(engine, "feed", springfield)
    assert (state(engine), read_state(engine)) == (before, roster)
    assert load(engine, "feed", springfield).counts["users"].changed == 1


@pytest.mark.parametrize("name", ["", " ", " a", "a\n", "x" * 64, "a\x1b"])
def test_names_that_are_none(engine: sa.Engine, springfield: Path, name: str) -> None:
    with pytest.raises(CommandError, match="a feed's name has 1 to 63 printable characters"):
        load(engine, name, springfield)


def test_a_feed_of_another_family(engine: sa.Engine, springfield: Path) -> None:
    with engine.begin() as connection:
        connection.execute(tables.feeds.insert().values(name="feed", format="clever"))
    with pytest.raises(CommandError, match="the feed feed takes clever, not oneroster"):
        load(engine, "feed", springfield)


def test_one_run_at_a_time(engine: sa.Engine, springfield: Path) -> None:
    words = r"another sync \(roster sync: feed, process \d+, for \d\d:\d\d:\d\d\)"
    with engine.connect() as other, hold_lock(other, "feed"), pytest.raises(LockedError, match=words):
        load(engine, "feed", springfield)
    assert load(engine, "feed", springfield).outcome == "done"


def test_readers_see_the_old_roster_until_the_end(engine: sa.Engine, springfield: Path) -> None:
    """A transaction that reads all along a run is neither blocked nor shown anything new."""
    load_first(engine, "feed", springfield)
    count = sa.select(tables.users.c.given_name).where(tables.users.c.sourced_id == "spr-student-1")
    with engine.connect().execution_options(isolation_level="REPEATABLE READ") as reader:
        reader.execute(sa.text("SET LOCAL lock_timeout = '1s'"))
        assert reader.scalar(count) == "Zoë"
        cell_of("users", "spr-student-1", "givenName", "Zoey")(springfield)
        load(engine, "feed", springfield)
        assert reader.scalar(count) == "Zoë"
    with engine.connect() as reader:
        assert reader.scalar(count) == "Zoey"
