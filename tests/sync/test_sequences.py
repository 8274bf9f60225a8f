"""Any sequence of nights, good and bad, ends in the state that a plain model predicts."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, event, example, given, note, settings
from hypothesis import strategies as st

from roster_service.db import tables
from roster_service.errors import CommandError
from roster_service.feeds import feeds
from roster_service.feeds.feed_states import FeedState
from roster_service.feeds.held_runs import close_held, drop_export
from roster_service.feeds.run_history import TYPES as NAMES
from roster_service.settings import Settings
from sync_scripts.applying.changes import Counts
from sync_scripts.engine.feed_removal import remove_feed
from sync_scripts.engine.load import Options, load
from sync_scripts.engine.run_record import Approval
from sync_scripts.purge import purge
from sync_scripts.reading.rejections import RefusedExportError
from tests.actors import TESTER
from tests.extent import examples

from .conftest import empty_roster
from .roster_model import ABSENT, MADE, PARTS, Export, Limits, Result, Roster
from .small_exports import DEVIATIONS, FEEDS, empty_delta, exports, exports_of_parts, whole_export, write_export

SEQUENCES = examples(2, 3, 200)
LIMITS = Limits(tombstones=40, changes=60, least=3)
RETENTION_DAYS = 7
AGE = timedelta(days=RETENTION_DAYS + 1)
OF_NAME = {NAMES.get(table.name, table.name): table for table in tables.ROSTER_TABLES}
COLUMNS = {
    "orgs": {"name": "name", "type": "type", "parentSourcedId": "parent_id", "district": "district_id"},
    "academicSessions": {"title": "title", "type": "type", "parentSourcedId": "parent_id"},
    "courses": {"title": "title", "orgSourcedId": "org_id", "schoolYearSourcedId": "school_year_id"},
    "classes": {"title": "title", "courseSourcedId": "course_id", "schoolSourcedId": "school_id"},
    "users": {"givenName": "given_name", "primaryOrg": "primary_org_id"},
    "enrollments": {
        "classSourcedId": "class_id", "schoolSourcedId": "school_id", "userSourcedId": "user_id", "role": "role",
    },
    "demographics": {"sex": "sex"},
}  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def limits() -> Iterator[None]:
    """The limits of the model, which knows nothing of that of rejected rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feeds, "HOLD_CHANGES_PERCENT", LIMITS.changes)
        patch.setattr(feeds, "HOLD_REJECTED_PERCENT", 100)
        yield


@dataclasses.dataclass(frozen=True)
class LoadRun:
    """A feed brings an export; `allow`: it may do anything; `dry`: nothing; `deviation`: how its files are written."""

    feed: str
    export: Export
    allow: bool = False
    dry: bool = False
    deviation: str | None = None


@dataclasses.dataclass(frozen=True)
class Verdict:
    """Somebody approves or discards the held run of a feed, where there is one."""

    feed: str
    approve: bool


@dataclasses.dataclass(frozen=True)
class LongAfter:
    """Time goes by, and then the purge runs."""


@dataclasses.dataclass(frozen=True)
class Purge:
    """The purge runs."""


@dataclasses.dataclass(frozen=True)
class RemoveFeed:
    """An operator removes a feed, and adds it again."""

    feed: str
    at_once: bool


Step = LoadRun | Verdict | LongAfter | Purge | RemoveFeed
RARELY = st.integers(0, 7).map(lambda number: number == 7)
FEED = st.sampled_from(FEEDS)
DEVIATION = st.one_of(st.none(), st.sampled_from(sorted(DEVIATIONS)))
LOAD_RUNS = FEED.flatmap(lambda feed: st.builds(LoadRun, st.just(feed), exports(feed), RARELY, RARELY, DEVIATION))
STEPS = st.one_of(
    LOAD_RUNS,
    LOAD_RUNS,
    LOAD_RUNS,
    st.builds(Verdict, FEED, st.booleans()),
    st.just(LongAfter()),
    st.just(Purge()),
    st.builds(RemoveFeed, FEED, st.booleans()),
)


class Sequence:
    """The service and the model, side by side."""

    def __init__(self, engine: sa.Engine, folder: Path) -> None:
        self.engine = engine
        self.folder = folder
        self.settings = Settings(
            home=folder / "home",
            hold_tombstones_percent=LIMITS.tombstones,
            hold_least_records=LIMITS.least,
        )
        self.model = Roster()
        self.runs = 0
        self.stamps: dict[int, datetime] = {}
        self.held: dict[str, tuple[int, Export]] = {}

    def do(self, step: Step) -> None:
        """One step in both worlds; what is reported is compared at once."""
        note(f"{step}")
        match step:
            case LoadRun():
                self.runs += 1
                path = write_export(step.export, self.folder / str(self.runs))
                if step.deviation is not None:
                    DEVIATIONS[step.deviation](path)
                self._load(step.feed, path, step.export, Options(self.settings, step.dry, step.allow))
            case Verdict():
                if step.feed in self.held:
                    self._end_held(step.feed, approve=step.approve)
            case LongAfter():
                self._let_time_pass()
                self._purge()
            case Purge():
                self._purge()
            case RemoveFeed():
                self._remove(step.feed, at_once=step.at_once)

    def _load(self, feed: str, path: Path, export: Export, options: Options) -> None:
        limits = None if options.allow_mass_delete or options.approval is not None else LIMITS
        wanted = self.model.load(feed, export, limits, self.runs, dry=options.dry_run)
        note(f"{feed}: {wanted}")
        _report_events(export, wanted)
        if wanted.outcome == "refused":
            with pytest.raises(RefusedExportError):
                load(self.engine, feed, path, options=options)
            return
        report = load(self.engine, feed, path, options=options)
        found = Result(report.outcome, {name: _report(count) for name, count in report.counts.items()}, report.rejected)
        note(f"{found} {report.message}\n{report.findings}")
        assert found == wanted
        if options.dry_run:
            return
        if report.stamp is not None:
            assert all(report.stamp > older for older in self.stamps.values())
            self.stamps[self.runs] = report.stamp
        self.held.pop(feed, None)
        if report.outcome == "held":
            assert report.run is not None
            self.held[feed] = (report.run, export)

    def _end_held(self, feed: str, *, approve: bool) -> None:
        number, export = self.held.pop(feed)
        with self.engine.begin() as connection:
            kept = connection.scalar(sa.select(tables.sync_runs.c.kept_export).where(tables.sync_runs.c.id == number))
            if not approve:
                closed = close_held(connection, tables.sync_runs.c.id == number, "discarded", "")
        assert kept is not None
        if approve:
            self.runs += 1
            options = Options(self.settings, approval=Approval(number, TESTER))
            self._load(feed, Path(kept), export, options)
        else:
            assert closed == [kept]
            drop_export(kept, self.settings.home)
        assert not Path(kept).exists()

    def _remove(self, feed: str, *, at_once: bool) -> None:
        self.runs += 1
        wanted = self.model.remove(feed, self.runs, at_once=at_once)
        if wanted is None:
            with pytest.raises(CommandError, match="there is no feed"):
                remove_feed(self.engine, TESTER, feed, self.settings, at_once=at_once)
            return
        report = remove_feed(self.engine, TESTER, feed, self.settings, at_once=at_once)
        event(f"a feed that is {'deleted' if at_once else 'removed'} with {min(len(wanted), 1)} or more types")
        tombstoned = {name: count.tombstoned for name, count in report.counts.items()}
        found = report.purged if at_once else tombstoned
        assert {name: count for name, count in found.items() if count} == wanted
        if report.stamp is not None:
            self.stamps[self.runs] = report.stamp
        self.held.pop(feed, None)
        with self.engine.begin() as connection:
            connection.execute(sa.update(tables.feeds).where(tables.feeds.c.name == feed).values(state=FeedState.ADDED))

    def _let_time_pass(self) -> None:
        with self.engine.begin() as connection:
            for table in tables.ROSTER_TABLES:
                connection.execute(sa.update(table).values(date_last_modified=table.c.date_last_modified - AGE))
            state = tables.roster_state
            connection.execute(sa.update(state).values(as_of=state.c.as_of - AGE))
        self.stamps = {run: stamp - AGE for run, stamp in self.stamps.items()}
        self.model.long_ago = self.runs

    def _purge(self) -> None:
        self.runs += 1
        purged, wanted = purge(self.engine, RETENTION_DAYS), self.model.purge(self.runs)
        assert {name: count for name, count in purged.items() if count} == wanted
        if any(record.moved == self.runs for record in self.model.records["users"].values()):
            with self.engine.connect() as connection:
                self.stamps[self.runs] = connection.execute(sa.select(tables.roster_state.c.as_of)).scalar_one()

    def compare(self) -> None:
        """The whole roster, record by record."""
        found = read_roster(self.engine)
        for name, records in self.model.records.items():
            wanted = {
                key: (
                    record.feed,
                    "active" if record.active else "tobedeleted",
                    self.stamps[record.moved],
                    record.content,
                )
                for key, record in records.items()
            }
            # Only what differs, so that the words of a failure are few.
            other = {key for key in wanted | found[name] if wanted.get(key) != found[name].get(key)}
            assert {key: found[name].get(key) for key in other} == {key: wanted.get(key) for key in other}, name
        with self.engine.connect() as connection:
            held = connection.scalars(sa.select(tables.sync_runs.c.id).where(tables.sync_runs.c.outcome == "held"))
            assert set(held) == {number for number, _ in self.held.values()}


def _report_events(export: Export, result: Result) -> None:
    """So that `--hypothesis-show-statistics` shows what the sequences reach."""
    event(f"a run that is {result.outcome}")
    for name, count in result.counts.items():
        for what in ("revived", "tombstoned"):
            if count[what]:
                event(f"{name} {what}")
    if result.rejected:
        event("rows rejected")
    for name in PARTS:
        if result.outcome != "refused" and export.rows.get(name):
            event(f"{name} in {export.modes[name]} taken")


def _report(count: Counts) -> dict[str, int]:
    reported = dataclasses.asdict(count)
    return {name: reported[name] for name in ("added", "changed", "revived", "tombstoned", "unchanged")}


def read_roster(engine: sa.Engine) -> dict[str, dict[str, Any]]:
    """The stored roster in the words of the model."""
    with engine.connect() as connection:

        def list_parts(table: sa.Table, *columns: str) -> dict[str, tuple[Any, ...]]:
            owner, ordinal, *_ = table.columns
            found: dict[str, tuple[Any, ...]] = {}
            for row in connection.execute(sa.select(table).order_by(owner, ordinal)):
                said = tuple(_read_cell(row._mapping[column]) for column in columns)
                found[row[0]] = (*found.get(row[0], ()), said if len(said) > 1 else said[0])
            return found

        agents = list_parts(tables.user_agents, "agent_id")
        roles = list_parts(tables.user_roles, "org_id", "role", "role_type", "profile_id", "origin")
        profiles = list_parts(tables.user_profiles, "profile_id", "vendor_id", "credentials")
        names = {row.id: row.name for row in connection.execute(sa.select(tables.feeds))}
        roster: dict[str, dict[str, Any]] = {}
        for name, table in OF_NAME.items():
            roster[name] = {}
            for row in connection.execute(sa.select(table)).mappings():
                key = row["sourced_id"]
                said = {ours: row[column] for ours, column in COLUMNS[name].items()}
                # An empty cell of a reference is none; a district that is not there stays None in both.
                said = {ours: "" if value is None and ours != "district" else value for ours, value in said.items()}
                if name == "classes":
                    said["terms"] = tuple(row["term_ids"] or ())
                if name == "users":
                    said |= {
                        "roles": roles.pop(key, ()),
                        "agents": agents.pop(key, ()),
                        "profiles": profiles.pop(key, ()),
                    }
                roster[name][key] = (names[row["feed_id"]], row["status"], row["date_last_modified"], said)
    assert (roles, agents, profiles) == ({}, {}, {})
    return roster


def _read_cell(value: Any) -> Any:
    """An empty cell is no value; of a credential, the user name tells it from others."""
    return value[0]["username"] if isinstance(value, list) else value or ""


# The roles that 1.2 brought keep their order when the feed goes on in 1.1.
TEACHES_AND_LEARNS = whole_export("a", ("cell", "roles", "r3", "userSourcedId", "te"))


# The teacher leaves, and the export still has the teacher's enrollments.
LEAVER = whole_export("a", ("drop", "users", "te", "", ""))
# Two classes name a course that is nowhere, in an export without courses.csv.
NAMES_NO_COURSE = whole_export("a", *(("cell", "classes", key, "courseSourcedId", "none") for key in ("k1", "k2")))
NAMES_NO_COURSE = dataclasses.replace(
    NAMES_NO_COURSE,
    modes={**NAMES_NO_COURSE.modes, MADE: ABSENT},
    rows={name: rows for name, rows in NAMES_NO_COURSE.rows.items() if name != MADE},
)


@example(first=whole_export("a"), steps=[LoadRun("a", LEAVER, allow=True), RemoveFeed("a", at_once=False)])
@example(
    first=LEAVER,
    steps=[RemoveFeed("a", at_once=False), LongAfter(), LoadRun("a", whole_export("a"), allow=True), LongAfter()],
)
@example(first=LEAVER, steps=[RemoveFeed("a", at_once=True), LoadRun("a", empty_delta("a", "1.2", "users"))])
@example(first=TEACHES_AND_LEARNS, steps=[LoadRun("a", empty_delta("a", "1.1", "enrollments"))])
@example(first=whole_export("a"), steps=[LoadRun("a", NAMES_NO_COURSE, allow=True), LoadRun("a", NAMES_NO_COURSE)])
@settings(max_examples=SEQUENCES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(first=exports("a"), steps=st.lists(STEPS, min_size=2, max_size=8))
def test_any_sequence_ends_as_the_model_predicts(reused_engine: sa.Engine, first: Export, steps: list[Step]) -> None:
    run_sequence(reused_engine, [LoadRun("a", first), *steps])


# A feed that is first loaded whole, and then speaks in deltas; another one has the same ids.
LOAD_RUNS_OF_PARTS = st.builds(LoadRun, st.just("a"), exports_of_parts("a"), st.just(True))
STEPS_OF_PARTS = st.one_of(LOAD_RUNS_OF_PARTS, LOAD_RUNS_OF_PARTS, LOAD_RUNS_OF_PARTS, LOAD_RUNS_OF_PARTS, STEPS)


@settings(max_examples=SEQUENCES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(steps=st.lists(STEPS_OF_PARTS, min_size=2, max_size=8))
def test_any_sequence_of_deltas_of_roles_and_profiles(reused_engine: sa.Engine, steps: list[Step]) -> None:
    run_sequence(reused_engine, [LoadRun("a", whole_export("a")), *steps])


def run_sequence(engine: sa.Engine, steps: list[Step]) -> None:
    """Both worlds, from the beginning."""
    empty_roster(engine)
    with tempfile.TemporaryDirectory() as folder:
        sequence = Sequence(engine, Path(folder))
        for step in steps:
            sequence.do(step)
            sequence.compare()
