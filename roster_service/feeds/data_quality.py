"""The findings of the checks of data quality, and their counts.

The nightly sync stores the counts of each feed once for each revision, so the counts of many revisions show a trend,
and nobody waits for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, tzinfo
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.dialects.postgresql import insert as upsert

from roster_service.db import tables
from roster_service.db.deadline import limit_statements
from roster_service.db.instants import begin_day
from roster_service.db.tables import feeds, quality_counts, sync_runs
from roster_service.errors import CommandError
from roster_service.feeds.checked_roster import CheckedRoster, StoredRoster
from roster_service.feeds.feed_states import FeedState
from roster_service.feeds.quality_checks import CHECKS, CHECKS_BY_NAME, QualityCheck
from roster_service.feeds.run_history import count_live
from roster_service.feeds.run_outcomes import LOADED_OUTCOMES

# The revisions of a feed whose counts are kept.
KEPT = 60
# In seconds: of one check of one feed, at night and while a person waits.
LONGEST_STORED, LONGEST_SHOWN = 120, 5
# The records that a preview shows of each check.
SAMPLES = 5
# Stands for the school of a record that has none.
NO_SCHOOL = ""


@dataclass(frozen=True)
class Finding:
    """A record that a check has found. `detail`: the value or the id that is wrong, None if there is none."""

    kind: str
    sourcedId: str  # noqa: N815  (the name in OneRoster)
    feed: str
    school: str | None
    schoolName: str | None  # noqa: N815
    detail: str | None


@dataclass(frozen=True)
class FeedQuality:
    """The counts of a feed. `revision`: that they are of; `counted`: when, None for right now; `totals`: by check, None
    where the count took too long; `schools`: by check, the number by school; `trend`: by check, the totals of the
    revisions before and of this one, the oldest first."""

    feed: str
    revision: int
    counted: str | None
    totals: Mapping[str, int | None]
    schools: Mapping[str, Mapping[str, int]]
    trend: Mapping[str, Sequence[int]]


def read_findings(
    connection: sa.Connection, check: QualityCheck, feed: str | None, school: str | None, window: tuple[int, int]
) -> list[Finding]:
    """Reads the findings of a check, by feed and id; those that belong together stand together. `window`: (rows to
    skip, rows to read). Raises CommandError if it takes too long, and for an unknown feed."""
    ids = {name: key for key, name in _list_feeds(connection) if feed in (None, name)}
    if feed is not None and not ids:
        raise CommandError(f"there is no feed {feed}")
    if not ids:
        return []
    # By itself: for a few rows in order, PostgreSQL would look each record up until it has them, which may be never.
    found = (
        sa.union_all(*(check.find(StoredRoster(key)) for key in ids.values())).cte("found").prefix_with("MATERIALIZED")
    )
    org = tables.orgs.alias()
    rows = (
        sa.select(found, feeds.c.name.label("feed"), org.c.name.label("school_name"))
        .join(feeds, feeds.c.id == found.c.feed_id)
        .outerjoin(org, org.c.sourced_id == found.c.school_id)
        .order_by(feeds.c.name, *([found.c.detail] if check.is_pairs else []), found.c.id, found.c.detail)
        .offset(window[0])
        .limit(window[1])
    )
    if school is not None:
        rows = rows.where(sa.func.coalesce(found.c.school_id, NO_SCHOOL) == school)
    with limit_statements(connection, LONGEST_SHOWN):
        return [
            Finding(row.kind, row.id, row.feed, row.school_id, row.school_name, row.detail)
            for row in connection.execute(rows)
        ]


def count_loaded(connection: sa.Connection, feed: str) -> Mapping[str, int]:
    """Returns the live records of a feed by type, as the last run that loaded an export has counted them."""
    rows = sa.select(sync_runs.c.counts).join(feeds, feeds.c.id == sync_runs.c.feed_id)
    rows = rows.where(feeds.c.name == feed, sync_runs.c.outcome.in_(LOADED_OUTCOMES)).order_by(sync_runs.c.id.desc())
    counted = (count_live(counts) for counts in connection.scalars(rows.limit(KEPT)))
    return next((counts for counts in counted if any(counts.values())), {})


def read_quality(connection: sa.Connection) -> list[FeedQuality]:
    """Reads the counts of every feed, by name: those of its present revision, and the totals of those before. Counts
    that are not stored are made now."""
    return [_read_feed(connection, key, name) for key, name in _list_feeds(connection)]


def read_trend(
    connection: sa.Connection, check: str, feed: str, since: date, zone: tzinfo | None
) -> list[tuple[date, int]]:
    """Lists (day, records that the check has found) of the stored counts of a feed, the oldest first: the last one of
    each day in a time zone, from `since` on."""
    rows = (
        sa.select(quality_counts.c.counted_at, quality_counts.c.totals[check].as_integer().label("number"))
        .join(feeds, feeds.c.id == quality_counts.c.feed_id)
        .where(feeds.c.name == feed, quality_counts.c.counted_at >= begin_day(since, zone))
        .order_by(quality_counts.c.revision)
    )
    found = {row.counted_at.astimezone(zone).date(): row.number for row in connection.execute(rows)}
    return [(day, number) for day, number in found.items() if number is not None]


@dataclass(frozen=True)
class Doubt:
    """A feed, and what its last counts have of checks that find what hardly anything but a faulty export has.
    `found`: by check, the number of its findings, none of them 0."""

    feed: str
    found: Mapping[str, int]

    @staticmethod
    def preview(feed: str, checks: Iterable[Mapping[str, Any]]) -> Doubt:
        """Returns what a preview finds. `checks`: each a `PreviewedCheck`, as JSON."""
        return Doubt(
            feed, {check["check"]: check["found"] for check in checks if check["is_doubtful"] and check["found"]}
        )

    def describe(self) -> str:
        """Returns the findings in words."""
        return "; ".join(f"{CHECKS_BY_NAME[name].title}: {number:,}" for name, number in self.found.items())


def list_doubts(connection: sa.Connection, feed: str | None = None) -> list[Doubt]:
    """Lists the feeds with such findings, by name, as they were last counted. `feed`: only this one."""
    last = sa.select(quality_counts).ext(distinct_on(quality_counts.c.feed_id))
    last = last.order_by(quality_counts.c.feed_id, quality_counts.c.revision.desc())
    counted = {row.feed_id: row.totals for row in connection.execute(last)}
    doubts = []
    for feed_id, name in _list_feeds(connection):
        totals = counted.get(feed_id, {})
        found = {check.name: number for check in CHECKS if check.is_doubtful and (number := totals.get(check.name))}
        if found and feed in (None, name):
            doubts.append(Doubt(name, found))
    return doubts


@dataclass(frozen=True)
class Sample:
    """A record that a check has found. `value`: that is wrong, None if there is none."""

    sourcedId: str  # noqa: N815  (the name in OneRoster)
    value: str | None


@dataclass(frozen=True)
class PreviewedCheck:
    """What a check would find after a run. `before`: what it found in the roster of the feed when it was last counted,
    None if it was not; `found`: None where it took too long."""

    check: str
    title: str
    is_doubtful: bool
    found: int | None
    before: int | None
    samples: Sequence[Sample]


def preview_quality(connection: sa.Connection, roster: CheckedRoster) -> list[PreviewedCheck]:
    """Returns what the checks find in the roster that a run would leave, without those that find nothing; first those
    whose findings hardly anything but a faulty export has."""
    own = quality_counts.c.feed_id == roster.feed_id
    last = sa.select(quality_counts.c.totals).where(own).order_by(quality_counts.c.revision.desc()).limit(1)
    before = connection.scalar(last) or {}
    previewed = []
    for name, schools in count_findings(connection, roster, LONGEST_STORED):
        if schools == {}:
            continue
        check = CHECKS_BY_NAME[name]
        found = check.find(roster).subquery("found")
        rows = sa.select(found.c.id, found.c.detail).order_by(found.c.id, found.c.detail).limit(SAMPLES)
        samples = [] if schools is None else [Sample(row.id, row.detail) for row in connection.execute(rows)]
        number = None if schools is None else sum(schools.values())
        previewed.append(PreviewedCheck(name, check.title, check.is_doubtful, number, before.get(name), samples))
    return sorted(previewed, key=lambda it: not it.is_doubtful)


def store_counts(engine: sa.Engine, feed: str | None = None) -> int:
    """Stores the counts of each feed whose present revision has none, and returns the number of those feeds. `feed`:
    only this one."""
    with engine.connect() as connection:
        wanted = [(key, name) for key, name in _list_feeds(connection) if feed in (None, name)]
    stored = 0
    for feed_id, _ in wanted:
        with engine.begin() as connection:
            revision = _read_revision(connection, feed_id)
            own = quality_counts.c.feed_id == feed_id
            if connection.scalar(
                sa.select(quality_counts.c.revision).where(own, quality_counts.c.revision == revision)
            ):
                continue
            schools = dict(count_findings(connection, StoredRoster(feed_id), LONGEST_STORED))
            if _read_revision(connection, feed_id) != revision:
                # A run has published meanwhile, and some of it is counted. It stores the counts of its own revision.
                continue
            former = sa.update(quality_counts).where(own, quality_counts.c.revision < revision)
            connection.execute(former.values(schools=None))
            totals = {name: None if found is None else sum(found.values()) for name, found in schools.items()}
            row = {"feed_id": feed_id, "revision": revision, "totals": totals, "schools": schools}
            # Somebody else may have counted it meanwhile: a load by hand, beside the nightly sync.
            connection.execute(upsert(quality_counts).values(row).on_conflict_do_nothing())
            kept = (
                sa.select(quality_counts.c.revision).where(own).order_by(quality_counts.c.revision.desc()).limit(KEPT)
            )
            connection.execute(sa.delete(quality_counts).where(own, quality_counts.c.revision.not_in(kept)))
            stored += 1
    return stored


def _list_feeds(connection: sa.Connection) -> list[tuple[int, str]]:
    """Lists (id, name) of the feeds that have been loaded, by name."""
    loaded = (feeds.c.state == FeedState.ADDED) & (feeds.c.revision > 0)
    rows = sa.select(feeds.c.id, feeds.c.name).where(loaded).order_by(feeds.c.name)
    return [(row.id, row.name) for row in connection.execute(rows)]


def _read_revision(connection: sa.Connection, feed_id: int) -> int:
    return connection.scalar(sa.select(feeds.c.revision).where(feeds.c.id == feed_id)) or 0


def _read_feed(connection: sa.Connection, feed_id: int, name: str) -> FeedQuality:
    revision = _read_revision(connection, feed_id)
    stored = sa.select(quality_counts).where(quality_counts.c.feed_id == feed_id).order_by(quality_counts.c.revision)
    rows = connection.execute(stored).all()
    now = next((row for row in rows if row.revision == revision), None)
    schools = dict(count_findings(connection, StoredRoster(feed_id), LONGEST_SHOWN)) if now is None else now.schools
    totals = {check: None if found is None else sum(found.values()) for check, found in schools.items()}
    history = [*(row.totals for row in rows if row.revision < revision), totals]
    return FeedQuality(
        name,
        revision,
        None if now is None else now.counted_at.isoformat(timespec="seconds"),
        totals,
        {check: found or {} for check, found in schools.items()},
        {
            check.name: [counted[check.name] for counted in history if counted.get(check.name) is not None]
            for check in CHECKS
        },
    )


def count_findings(
    connection: sa.Connection, roster: CheckedRoster, seconds: float
) -> Iterator[tuple[str, Mapping[str, int] | None]]:
    """Yields for each check its name and the number of its findings by school; None where it took longer than so many
    seconds."""
    for check in CHECKS:
        found = check.find(roster).subquery("found")
        school = sa.func.coalesce(found.c.school_id, NO_SCHOOL)
        rows = sa.select(school.label("school"), sa.func.count().label("number")).group_by(school)
        counted: Mapping[str, int] | None
        try:
            with limit_statements(connection, seconds):
                counted = {row.school: row.number for row in connection.execute(rows)}
        except CommandError:
            counted = None
        yield check.name, counted
