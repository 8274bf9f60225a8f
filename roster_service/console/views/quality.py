"""Data quality: what the checks have found, by feed and school, and the records that they found."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from roster_service.change_log.actors import OperatorRole
from roster_service.console.day_charts import DayChart, find_first, make_chart, read_range
from roster_service.console.list_pages import Paged, cut_page, find_window, make_paged
from roster_service.console.screen import Form, Screen
from roster_service.console.visit import Visit
from roster_service.db import tables
from roster_service.db.instants import find_today
from roster_service.db.tables import ROSTER_TABLES
from roster_service.errors import CommandError
from roster_service.explore.references import read_labels
from roster_service.explore.rejected_rows import count_naming_rows
from roster_service.feeds.data_quality import (
    NO_SCHOOL,
    FeedQuality,
    count_loaded,
    read_findings,
    read_quality,
    read_trend,
)
from roster_service.feeds.feeds import list_feeds
from roster_service.feeds.quality_checks import CHECKS, CHECKS_BY_NAME
from roster_service.feeds.rejected_rows import find_loading_run
from roster_service.feeds.run_history import TYPES

_TABLES = {TYPES[table.name]: table for table in ROSTER_TABLES}


@dataclass(frozen=True)
class CheckSummary:
    """A check. `count`: of the wanted feeds; None where one of them took too long; `records`: that the last loads of
    these feeds have of the types that it looks at; `trend`: of the revisions of the only wanted feed; empty for
    several, whose revisions are not the same."""

    check: str
    title: str
    advice: str
    count: int | None
    records: int
    trend: Sequence[int]

    @property
    def share(self) -> float:
        """The findings in percent of the records; 0 where nothing was counted."""
        return min(100 * (self.count or 0) / self.records, 100) if self.records else 0


@dataclass(frozen=True)
class PlaceCounts:
    """A feed or a school with its findings by check, without those that are 0. `school`: its id, None for a whole
    feed."""

    feed: str
    school: str | None
    name: str
    counts: Mapping[str, int]
    total: int


@dataclass(frozen=True)
class Quality:
    """The counts of all feeds, or of the one that is chosen. `counted`, `counted_until`: when the oldest and the newest
    of them were counted, None for right now; `places`: the feeds, or the schools of the chosen one, the worst first."""

    feeds: Sequence[str]
    feed: str | None
    counted: str | None
    counted_until: str | None
    checks: Sequence[CheckSummary]
    places: Paged


@dataclass(frozen=True)
class NamedFinding:
    """A record that a check has found, with its name. `rejected`: the number of rejected rows that name the record, of
    the run that its feed was last loaded by."""

    kind: str
    sourcedId: str  # noqa: N815  (the name in OneRoster)
    name: str | None
    school: str | None
    schoolName: str | None  # noqa: N815
    feed: str
    detail: str | None
    rejected: int


@dataclass(frozen=True)
class SisRow:
    """A finding as the office of the SIS gets it. `file`: of the export, blank for a format that has other files
    (the service keeps no line of a row that it takes); `do`: what to do."""

    feed: str
    file: str
    sourcedId: str  # noqa: N815  (the name in OneRoster)
    name: str | None
    school: str | None
    value: str | None
    do: str


@dataclass(frozen=True)
class FindingsPage:
    """The findings of a check. `is_pairs`: those that have the same value belong together; `formats`: of exports, by
    feed; `runs`: by feed, the run whose rejected rows are counted beside the records; `chart`:
    how many findings there were in a feed, None for several feeds or without counts."""

    check: str
    title: str
    advice: str
    feed: str | None
    school: str | None
    problem: str | None
    is_pairs: bool
    formats: Mapping[str, str]
    runs: Mapping[str, int]
    rows: Paged
    chart: DayChart | None


def read_summary(visit: Visit) -> Quality:
    """Reads the counts. A feed that is not there chooses none."""
    every = read_quality(visit.connection)
    names = [counted_feed.feed for counted_feed in every]
    feed = visit.get("feed") if visit.get("feed") in names else None
    feed = names[0] if len(names) == 1 else feed
    wanted = [counted_feed for counted_feed in every if feed in (None, counted_feed.feed)]
    counted = [counted_feed.counted for counted_feed in wanted]
    stored = sorted(filter(None, counted))
    loaded: Counter[str] = Counter()
    for counted_feed in wanted:
        loaded.update(count_loaded(visit.connection, counted_feed.feed))
    checks = [_sum(check.name, wanted, loaded) for check in CHECKS]
    return Quality(
        feeds=names,
        feed=feed,
        counted=stored[0] if stored else None,
        counted_until=None if None in counted or not stored else stored[-1],
        checks=sorted(checks, key=lambda check: (check.count is not None, -check.share, -(check.count or 0))),
        places=cut_page(visit, _list_schools(visit.connection, wanted[0]) if feed else _list_feeds(wanted)),
    )


def _sum(name: str, wanted: Sequence[FeedQuality], loaded: Mapping[str, int]) -> CheckSummary:
    check = CHECKS_BY_NAME[name]
    counts = [counted_feed.totals.get(name) for counted_feed in wanted]
    count = None if None in counts else sum(filter(None, counts))
    records = sum(loaded.get(kind, 0) for kind in check.kinds)
    trend = wanted[0].trend[name] if len(wanted) == 1 else ()
    return CheckSummary(name, check.title, check.advice, count, records, trend)


def _list_feeds(wanted: Sequence[FeedQuality]) -> list[PlaceCounts]:
    found = []
    for counted_feed in wanted:
        counts = {name: count for name, count in counted_feed.totals.items() if count}
        found.append(PlaceCounts(counted_feed.feed, None, counted_feed.feed, counts, sum(counts.values())))
    return sorted(found, key=lambda it: (-it.total, it.name))


def _list_schools(connection: sa.Connection, quality: FeedQuality) -> list[PlaceCounts]:
    schools = {school for found in quality.schools.values() for school in found}
    names = read_labels(connection, tables.orgs, schools - {NO_SCHOOL})
    found = []
    for school in schools:
        counts = {name: of[school] for name, of in quality.schools.items() if of.get(school)}
        name = names.get(school, school or "without a school")
        found.append(PlaceCounts(quality.feed, school, name, counts, sum(counts.values())))
    return sorted(found, key=lambda it: (-it.total, it.name))


def read_check(visit: Visit) -> FindingsPage:
    """Reads the findings of the check of the path. Raises CommandError if there is no such check."""
    check = CHECKS_BY_NAME.get(visit.place["check"])
    if check is None:
        raise CommandError(f"there is no check {visit.place['check'][:80]}")
    feed, problem, rows = visit.get("feed"), None, []
    school = visit.query.get("school")
    try:
        rows = read_findings(visit.connection, check, feed, school, find_window(visit))
    except CommandError as error:
        problem = str(error)
    page = make_paged(visit, rows)
    names = {
        (kind, key): name
        for kind, table in _TABLES.items()
        for key, name in read_labels(
            visit.connection, table, (row.sourcedId for row in page.rows if row.kind == kind)
        ).items()
    }
    runs = {name: run for name in {row.feed for row in page.rows} if (run := find_loading_run(visit.connection, name))}
    counts = {
        (name, *pair): count
        for name, run in runs.items()
        for pair, count in count_naming_rows(
            visit.connection, run, {(row.kind, row.sourcedId) for row in page.rows if row.feed == name}
        ).items()
    }
    named = [
        NamedFinding(
            kind=row.kind,
            sourcedId=row.sourcedId,
            name=names.get((row.kind, row.sourcedId)),
            school=row.school,
            schoolName=row.schoolName,
            feed=row.feed,
            detail=row.detail,
            rejected=counts.get((row.feed, row.kind, row.sourcedId), 0),
        )
        for row in page.rows
    ]
    rows_named = dataclasses.replace(page, rows=named)
    chart = _make_chart(visit, check.name, feed) if problem is None and feed and not school else None
    return FindingsPage(
        check=check.name,
        title=check.title,
        advice=check.advice,
        feed=feed,
        school=school,
        problem=problem,
        is_pairs=check.is_pairs,
        formats={listed.name: listed.format for listed in list_feeds(visit.connection, visit.settings.time_zone)},
        runs=runs,
        rows=rows_named,
        chart=chart,
    )


def list_for_sis(content: FindingsPage) -> list[SisRow]:
    """Returns the findings for the office of the SIS."""
    return [
        SisRow(
            feed=row.feed,
            file=f"{row.kind}.csv" if content.formats.get(row.feed) == "oneroster" else "",
            sourcedId=row.sourcedId,
            name=row.name,
            school=row.schoolName or row.school,
            value=row.detail,
            do=f"{content.title}: {content.advice}",
        )
        for row in content.rows.rows
    ]


def _make_chart(visit: Visit, check: str, feed: str) -> DayChart | None:
    zone = visit.settings.time_zone
    days, last = read_range(visit), find_today(zone)
    numbers = read_trend(visit.connection, check, feed, find_first(days, last), zone)
    found = [(day, "records", number) for day, number in numbers]
    return make_chart(days, last, found, is_sum=False) if found else None


SCREENS = (
    Screen(
        "quality", "/quality", "Data quality", OperatorRole.VIEWER, read_summary, lambda it: it.places.rows, "Quality"
    ),
    Screen(
        "findings",
        "/quality/<check>",
        "Findings",
        OperatorRole.VIEWER,
        read_check,
        list_for_sis,
        None,
    ),
)
FORMS: Sequence[Form] = ()
