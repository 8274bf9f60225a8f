"""Runs of different feeds at the same time: none waits for another one, and no consumer misses a change."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roster_service.accounts import vendor_rights, vendors
from roster_service.db import tables
from roster_service.db.tables import WHOLE, orgs, sync_runs, users, visible_feeds, visible_orgs
from roster_service.feeds.feeds import list_feeds
from roster_service.feeds.roster_state import publish
from roster_service.feeds.sync_lock import INTERRUPTED, RUNNING, LockedError, hold_lock, try_sync_lock
from roster_service.settings import Settings
from sync_scripts.applying.writes import TABLES, make_missing_indexes
from sync_scripts.engine.feed_removal import remove_feed
from sync_scripts.engine.load import Options, load
from sync_scripts.engine.nightly_feeds import NightlySync, load_feeds
from sync_scripts.engine.report import Report
from sync_scripts.engine.run_record import begin_run, end_run, take_stamp
from sync_scripts.purge import purge
from sync_scripts.reading.rejections import NO_FINDINGS
from tests.actors import TESTER
from tests.conditions import is_blocked, wait_for
from tests.postgres.loaded import load_districts, load_first
from tests.sync.conftest import EXPORTS, SHELBYVILLE, SPRINGFIELD, describe, empty_roster, snapshot
from tests.sync.export_changes import cell_of, with_row, without_rows

FEEDS = {"springfield": SPRINGFIELD, "shelbyville": SHELBYVILLE}
# Steps of a run at whose end it has locks, rows in tables, or both.
STEPS = ("stage", "compare", "write", "analyze")
DISTRICTS = {"springfield": "spr-district", "shelbyville": "shv-district"}


@pytest.fixture
def loaded(engine: sa.Engine) -> sa.Engine:
    """Both small exports, and vendors that see one feed or both."""
    load_districts(engine, FEEDS)
    with engine.begin() as connection:
        for name, granted in {"both": DISTRICTS, **{feed: {feed} for feed in FEEDS}}.items():
            vendors.add_vendor(connection, TESTER, f"{name}@vendors.example", name)
            for feed in granted:
                vendor_rights.grant(connection, TESTER, f"{name}@vendors.example", DISTRICTS[feed], [])
    return engine


def load_with(engine: sa.Engine, feed: str, path: Path, step: str, act: Callable[[], object]) -> Report:
    """Loads an export, and acts at the end of a step, in the middle of the run."""

    def notify(event: Mapping[str, Any]) -> None:
        if event["step"] == step and "seconds" in event:
            act()

    return load(engine, feed, path, options=Options(notify=notify))


def read_as_of(engine: sa.Engine, vendor: str) -> datetime:
    """The instant from which a consumer of this vendor goes on."""
    own = sa.select(tables.vendors.c.id).where(tables.vendors.c.email == f"{vendor}@vendors.example").scalar_subquery()
    whole = sa.select(visible_feeds.c.as_of).where(visible_feeds.c.vendor_id == own, visible_feeds.c.feed_id == WHOLE)
    with engine.connect() as connection:
        as_of: datetime = connection.execute(whole).scalar_one()
    return as_of


def rename(path: Path, feed: str, name: str) -> None:
    """Another name for a student of the export."""
    cell_of("users", f"{DISTRICTS[feed][:3]}-student-1", "givenName", name)(path)


@pytest.mark.parametrize("step", STEPS)
def test_a_load_goes_on_while_another_feed_is_loaded(
    loaded: sa.Engine, springfield: Path, shelbyville: Path, step: str
) -> None:
    rename(springfield, "springfield", "Changed")
    rename(shelbyville, "shelbyville", "Changed")
    inner: list[Report] = []
    outer = load_with(
        loaded, "springfield", springfield, step, lambda: inner.append(load(loaded, "shelbyville", shelbyville))
    )
    assert [report.outcome for report in (*inner, outer)] == ["done", "done"]
    found = snapshot(loaded, users)
    assert [found[f"{name}-student-1"]["given_name"] for name in ("spr", "shv")] == ["Changed"] * 2
    # Revisions are in the order in which they are announced.
    assert outer.revision == (inner[0].revision or 0) + 1


def test_a_load_says_which_command_needs_the_roster(loaded: sa.Engine, springfield: Path) -> None:
    words = r"another command \(roster: notes a restored database, process \d+, for .*\) is under way"
    with loaded.begin() as connection:
        assert try_sync_lock(connection, "notes a restored database")
        with pytest.raises(LockedError, match=words):
            load(loaded, "springfield", springfield)


def test_a_run_of_the_same_feed_is_locked_or_waits(loaded: sa.Engine, springfield: Path) -> None:
    rename(springfield, "springfield", "Changed")
    waiting: list[threading.Thread] = []
    reports: list[Report] = []

    def come() -> None:
        words = r"another sync \(roster sync: analyze, springfield, process \d+, for .*\) is under way"
        with pytest.raises(LockedError, match=words):
            load(loaded, "springfield", EXPORTS / SPRINGFIELD)
        options = Options(wait=True)
        waiting.append(
            threading.Thread(
                target=lambda: reports.append(load(loaded, "springfield", EXPORTS / SPRINGFIELD, options=options))
            )
        )
        waiting[0].start()

    outer = load_with(loaded, "springfield", springfield, "analyze", come)
    waiting[0].join()
    assert [outer.counts["users"].changed, reports[0].counts["users"].changed] == [1, 1]
    assert reports[0].revision == (outer.revision or 0) + 1


def test_the_first_load_is_alone_because_it_makes_the_indexes(
    engine: sa.Engine, springfield: Path, shelbyville: Path
) -> None:
    def come() -> None:
        with pytest.raises(LockedError):
            load(engine, "shelbyville", shelbyville)

    assert load_with(engine, "springfield", springfield, "write", come).outcome == "done"
    assert load(engine, "shelbyville", shelbyville).outcome == "done"


def test_a_purge_takes_the_feeds_that_no_run_has(loaded: sa.Engine, springfield: Path, shelbyville: Path) -> None:
    without_rows("demographics", "spr-student-5")(springfield)
    load(loaded, "springfield", springfield)
    without_rows("demographics", "shv-student-1")(shelbyville)
    load(loaded, "shelbyville", shelbyville)
    rename(springfield, "springfield", "Changed")

    def come() -> None:
        with pytest.raises(LockedError, match="springfield"):
            purge(loaded, 0)

    before = snapshot(loaded, tables.demographics)
    load_with(loaded, "springfield", springfield, "analyze", come)
    assert before.keys() - snapshot(loaded, tables.demographics).keys() == {"shv-student-1"}
    assert purge(loaded, 0)["demographics"] == 1


def test_a_feed_is_removed_beside_a_load(loaded: sa.Engine, springfield: Path) -> None:
    rename(springfield, "springfield", "Changed")
    load_with(
        loaded,
        "springfield",
        springfield,
        "analyze",
        lambda: remove_feed(loaded, TESTER, "shelbyville", Settings(), at_once=True),
    )
    assert {key[:3] for key in snapshot(loaded, users)} == {"spr"}
    assert snapshot(loaded, users)["spr-student-1"]["given_name"] == "Changed"


def test_two_feeds_that_add_one_id_at_the_same_time_do_not_both_get_it(
    loaded: sa.Engine, springfield: Path, shelbyville: Path
) -> None:
    """The second load waits for the first one, and then rejects the row as that of another feed."""
    row = {"sourcedId": "both", "name": "Both", "type": "school"}
    with_row("orgs", **row, parentSourcedId="spr-district")(springfield)
    with_row("orgs", **row, parentSourcedId="shv-district")(shelbyville)
    reports: list[Report] = []
    other = threading.Thread(target=lambda: reports.append(load(loaded, "shelbyville", shelbyville)))

    def come() -> None:
        other.start()
        wait_for(lambda: is_blocked(loaded))

    load_with(loaded, "springfield", springfield, "analyze", come)
    other.join()
    assert "belongs to the feed springfield (found 'both')" in describe(reports[0].findings)
    assert snapshot(loaded, orgs)["both"]["parent_id"] == "spr-district"


def test_only_a_run_whose_lock_is_free_is_interrupted(loaded: sa.Engine, springfield: Path) -> None:
    """A killed run beside one that is under way; its stamp holds nobody back."""
    rename(springfield, "springfield", "Changed")
    with loaded.begin() as connection:
        row = {"feed_id": 2, "format": "oneroster", "source": "x", "started_at": sa.func.now(), "stamp": sa.func.now()}
        connection.execute(sa.update(sync_runs).values(finished_at=sa.func.now() - sa.text("interval '1 day'")))
        connection.execute(sa.insert(sync_runs).values(**row, outcome=RUNNING, counts={}, seconds={}))
    seen: list[str | None] = []

    def look() -> None:
        with loaded.connect() as connection:
            listed = list_feeds(connection, None)
        seen.extend(feed.last_outcome for feed in listed)
        # Not the end of the good run before it.
        assert all(feed.last_run is not None and feed.last_run > str(feed.last_good_run) for feed in listed)

    report = load_with(loaded, "springfield", springfield, "analyze", look)
    assert seen == [INTERRUPTED, RUNNING]
    assert read_as_of(loaded, "both") == report.stamp
    load(loaded, "shelbyville", EXPORTS / SHELBYVILLE)
    assert snapshot(loaded, sync_runs)[3]["outcome"] == INTERRUPTED


def test_no_consumer_is_shown_an_instant_beyond_changes_that_are_still_to_come(
    loaded: sa.Engine, springfield: Path, shelbyville: Path
) -> None:
    rename(springfield, "springfield", "Changed")
    rename(shelbyville, "shelbyville", "Changed")
    before = read_as_of(loaded, "springfield")
    seen: dict[str, datetime] = {}
    inner: list[Report] = []

    def come() -> None:
        inner.append(load(loaded, "shelbyville", shelbyville))
        seen.update({name: read_as_of(loaded, name) for name in ("both", *FEEDS)})

    outer = load_with(loaded, "springfield", springfield, "analyze", come)
    assert outer.stamp is not None
    assert inner[0].stamp is not None
    assert outer.stamp < inner[0].stamp
    assert seen["both"] < outer.stamp
    assert seen["shelbyville"] == inner[0].stamp
    assert seen["springfield"] == before
    assert read_as_of(loaded, "both") == inner[0].stamp
    assert read_as_of(loaded, "springfield") == outer.stamp


def test_a_grant_that_opens_no_org_yet_counts_as_one_of_every_feed(
    loaded: sa.Engine, springfield: Path, shelbyville: Path
) -> None:
    """A run that is under way may add its org."""
    with loaded.begin() as connection:
        opened = sa.update(tables.vendor_grants).where(tables.vendor_grants.c.district_id == DISTRICTS["springfield"])
        connection.execute(opened.values(district_id="spr-second"))
        publish(connection, [1, 2])
    row = {"sourcedId": "spr-second", "name": "Second", "type": "district"}
    with_row("orgs", **row)(springfield)
    rename(shelbyville, "shelbyville", "Changed")
    seen: list[datetime] = []

    def come() -> None:
        load(loaded, "shelbyville", shelbyville)
        seen.append(read_as_of(loaded, "both"))

    outer = load_with(loaded, "springfield", springfield, "analyze", come)
    assert outer.stamp is not None
    assert seen[0] < outer.stamp


# --- stamps, as a model ---------------------------------------------------------------------------------------------

NAMES = ("a", "b", "c")
GRANTS = {"all": NAMES, "two": NAMES[:2], "one": NAMES[:1]}


@dataclass
class Writer:
    """A feed of one org, whose runs change the name of the org step by step."""

    engine: sa.Engine
    feed_id: int
    name: str
    stack: ExitStack = field(default_factory=ExitStack)
    connection: sa.Connection | None = None
    run: int = 0
    stamp: datetime | None = None

    def go_on(self, number: int) -> None:
        """The next step: the run begins, takes its stamp and writes, or is announced and committed."""
        if self.connection is None:
            self.connection = self.stack.enter_context(self.engine.connect())
            self.stack.enter_context(hold_lock(self.connection, self.name))
            with self.engine.begin() as other:
                self.run = begin_run(other, self.feed_id, "oneroster", "x")
        elif self.stamp is None:
            self.stamp = take_stamp(self.engine, self.run)
            own = sa.update(orgs).where(orgs.c.sourced_id == self.name)
            self.connection.execute(own.values(name=str(number), date_last_modified=self.stamp))
        else:
            publish(self.connection, [self.feed_id], as_of=self.stamp)
            end_run(self.connection, self.run, NO_FINDINGS, outcome="done", stamp=self.stamp)
            self.connection.commit()
            self._leave()

    def break_off(self) -> None:
        """The run is killed: its transaction is rolled back, its row stays as it is, and its lock is free."""
        if self.connection is not None:
            self.connection.rollback()
            self._leave()

    def _leave(self) -> None:
        self.stack.close()
        self.connection, self.stamp = None, None


@dataclass
class Consumer:
    """A vendor that goes on from the last instant that it was shown."""

    engine: sa.Engine
    vendor_id: int
    as_of: datetime | None = None
    known: dict[str, str] = field(default_factory=dict)

    def pull(self) -> None:
        """A delta; then the consumer knows all that is visible."""
        state = sa.select(visible_feeds.c.as_of).where(
            visible_feeds.c.vendor_id == self.vendor_id, visible_feeds.c.feed_id == WHOLE
        )
        seen = sa.select(visible_orgs.c.org_id).where(visible_orgs.c.vendor_id == self.vendor_id)
        rows = sa.select(orgs.c.sourced_id, orgs.c.name, orgs.c.date_last_modified).where(orgs.c.sourced_id.in_(seen))
        with self.engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
            found = connection.execute(rows).all()
            shown: datetime = connection.execute(state).scalar_one()
        self.known |= {row[0]: row[1] for row in found if self.as_of is None or row[2] > self.as_of}
        assert self.as_of is None or shown >= self.as_of
        self.as_of = shown
        assert self.known == {row[0]: row[1] for row in found}


@pytest.fixture(scope="module")
def consumers(reused_engine: sa.Engine) -> Iterator[dict[str, Consumer]]:
    """A feed of one district for each name, and vendors that see some of them."""
    engine = reused_engine
    empty_roster(engine)
    found = {}
    with engine.begin() as connection:
        for number, name in enumerate(NAMES, 1):
            connection.execute(sa.insert(tables.feeds).values(name=name, format="oneroster"))
            row = {"sourced_id": name, "feed_id": number, "status": "active", "date_last_modified": sa.func.now()}
            connection.execute(sa.insert(orgs).values(**row, name="0", type="district", district_id=name))
        for name, granted in GRANTS.items():
            email = f"{name}@vendors.example"
            vendors.add_vendor(connection, TESTER, email, name)
            for district in granted:
                vendor_rights.grant(connection, TESTER, email, district, [])
            own = sa.select(tables.vendors.c.id).where(tables.vendors.c.email == email)
            found[name] = Consumer(engine, connection.execute(own).scalar_one())
    yield found
    empty_roster(engine)


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("go on"), st.sampled_from(NAMES)),
        st.tuples(st.just("go on"), st.sampled_from(NAMES)),
        st.tuples(st.just("break off"), st.sampled_from(NAMES)),
        st.tuples(st.just("pull"), st.sampled_from(list(GRANTS))),
    ),
    min_size=8,
    max_size=30,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=EVENTS)
def test_a_consumer_misses_no_change_of_runs_side_by_side(
    reused_engine: sa.Engine, consumers: dict[str, Consumer], events: list[tuple[str, str]]
) -> None:
    writers = {name: Writer(reused_engine, number, name) for number, name in enumerate(NAMES, 1)}
    try:
        for number, (event, name) in enumerate(events, 1):
            if event == "pull":
                consumers[name].pull()
            elif event == "go on":
                writers[name].go_on(number)
            else:
                writers[name].break_off()
    finally:
        for writer in writers.values():
            writer.break_off()
    for consumer in consumers.values():
        consumer.pull()


# --- a nightly sync --------------------------------------------------------------------------------------------------

# What differs between two loads of the same export.
TIMES = ("date_last_modified",)


def test_two_jobs_give_the_roster_of_one(engine: sa.Engine, tmp_path: Path, copy_export: Callable[[str], Path]) -> None:
    found = []
    paths = {name: copy_export(export) for name, export in FEEDS.items()}
    for jobs in (1, 2):
        empty_roster(engine)
        with engine.begin() as connection:
            rows = [{"name": name, "format": "oneroster", "path": str(path)} for name, path in paths.items()]
            connection.execute(sa.insert(tables.feeds), rows)
        events: list[dict[str, Any]] = []
        for name in ("first", "second"):
            for feed, path in paths.items():
                rename(path, feed, name)
            settings = Settings(home=tmp_path / "home", sync_jobs=jobs, export_age_minutes=0)
            sync = NightlySync(engine, settings, events.append)
            assert load_feeds(sync) == [0, 0]
        assert sorted(event["feed"] for event in events if "outcome" in event) == sorted([*FEEDS] * 2)
        found.append({table.name: strip(snapshot(engine, table)) for table in TABLES})
    assert found[0] == found[1]


def strip(rows: Mapping[Any, Mapping[str, Any]]) -> dict[Any, dict[str, Any]]:
    """The rows without their times."""
    return {key: {name: value for name, value in row.items() if name not in TIMES} for key, row in rows.items()}


def test_indexes_are_made_once(engine: sa.Engine, springfield: Path) -> None:
    load_first(engine, "springfield", springfield)
    with engine.begin() as connection:
        made = sa.text("SELECT indexrelid FROM pg_stat_user_indexes ORDER BY 1")
        before = connection.scalars(made).all()
        make_missing_indexes(connection, TABLES)
        assert connection.scalars(made).all() == before
