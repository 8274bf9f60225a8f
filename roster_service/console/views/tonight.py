"""The first page: the last sync at a glance, and what a person must do first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from roster_service.access.access_log.reports import UsageRow, read_usage
from roster_service.access.feeds import Feed, list_feeds
from roster_service.access.runs import read_approval
from roster_service.access.scripts import Background
from roster_service.console.filters import to_age, to_segment
from roster_service.console.screen import Screen
from roster_service.console.visit import Visit
from roster_service.db.actors import OperatorRole
from roster_service.db.figures import read_cache_sizes
from roster_service.db.run_history import FinishedRun, list_latest_runs
from roster_service.db.sync_lock import RUNNING
from roster_service.settings import Settings

# The runs of a small chart.
CHARTED_RUNS = 30
# A card shows the types of records that districts count in.
CHARTED = ("users", "classes", "enrollments")
# Outcomes of a run after which a person must look, in words.
BAD_OUTCOMES = {
    "refused": "was refused, because its export cannot be loaded as it is",
    "failed": "failed, because the service could not finish it",
    "interrupted": "was interrupted",
}


@dataclass(frozen=True)
class Task:
    """A thing that a person must do. `path`: of the page for it, below `/console`."""

    text: str
    path: str


@dataclass(frozen=True)
class FeedCard:
    """A feed with its last runs. `charts`: by type of record, the number of records after each of the last runs, the
    oldest first; `is_approving`: whether the approval of its held run is under way; `task`: None if nobody must act."""

    feed: Feed
    last: FinishedRun | None
    charts: Mapping[str, Sequence[int]]
    is_approving: bool
    task: Task | None


@dataclass(frozen=True)
class ActiveVendor:
    """A vendor's requests of today, in UTC. `refused`: answered 4xx, limits included; `failed`: answered 5xx."""

    vendor: str
    requests: int
    records: int
    refused: int
    failed: int


@dataclass(frozen=True)
class Tonight:
    """The content of the page. `removed`: the number of feeds that were removed, which have no card; `cache_bytes`:
    that all caches take on disk; `is_live`: whether the page changes by itself."""

    tasks: Sequence[Task]
    cards: Sequence[FeedCard]
    removed: int
    vendors: Sequence[ActiveVendor]
    cache_bytes: int
    is_live: bool


def read_tonight(visit: Visit) -> Tonight:
    """Reads the health of every feed, the vendors of today, and the disk that the caches take."""
    connection = visit.connection
    listed = list_feeds(connection)
    runs = list_latest_runs(connection, CHARTED_RUNS)
    cards = [_make_card(feed, runs.get(feed.name, ()), visit.settings) for feed in listed if feed.state != "removed"]
    return Tonight(
        tasks=[card.task for card in cards if card.task is not None],
        cards=sorted(cards, key=lambda card: (card.task is None, card.feed.name)),
        removed=sum(feed.state == "removed" for feed in listed),
        vendors=list(_sum_vendors(read_usage(connection, None, datetime.now(UTC).date()))),
        cache_bytes=sum(read_cache_sizes(connection)),
        is_live=any(card.is_approving or card.feed.last_outcome == RUNNING for card in cards),
    )


def _make_card(feed: Feed, runs: Sequence[FinishedRun], settings: Settings) -> FeedCard:
    charts = {name: [run.records.get(name, 0) for run in runs if run.is_good] for name in CHARTED}
    approval = None if feed.held_run is None else read_approval(settings.home, feed.held_run)
    task = _find_task(feed, runs, approval, settings)
    return FeedCard(feed, runs[-1] if runs else None, charts, approval is not None and approval.is_running, task)


def _find_task(feed: Feed, runs: Sequence[FinishedRun], approval: Background | None, settings: Settings) -> Task | None:
    """What must be done about a feed; the first that applies. `approval`: of its held run."""
    own = f"/feeds/{to_segment(feed.name)}"
    # An interrupted run has not finished; the page of the feed has it.
    is_last = bool(runs) and runs[-1].outcome == feed.last_outcome
    place = f"/runs/{runs[-1].run}" if is_last else own
    if feed.held_run is not None:
        if approval is not None and approval.is_running:
            return None
        words = "waits for your decision" if approval is None else "waits for your decision: its approval failed"
        return Task(f"{feed.name}: run {feed.held_run} {words}", f"/runs/{feed.held_run}/held")
    if not feed.enabled or feed.pause is not None:
        return None
    if feed.last_outcome in BAD_OUTCOMES:
        return Task(f"{feed.name}: the last run {BAD_OUTCOMES[feed.last_outcome]}", place)
    if feed.age_seconds is None:
        return Task(f"{feed.name}: nothing has been loaded yet", own)
    if feed.age_seconds > timedelta(days=settings.stale_days).total_seconds():
        return Task(f"{feed.name}: the last good run was {to_age(feed.age_seconds)}", place)
    return None


def _sum_vendors(rows: Sequence[UsageRow]) -> Iterator[ActiveVendor]:
    for vendor in sorted({row.vendor for row in rows}):
        own = [row for row in rows if row.vendor == vendor]

        def count(status: str, own: Sequence[UsageRow] = own) -> int:
            return sum(row.requests for row in own if row.status == status)

        total = sum(row.requests for row in own)
        yield ActiveVendor(vendor, total, sum(row.records for row in own), count("4xx"), count("5xx"))


SCREENS = (Screen("tonight", "", "Tonight", OperatorRole.VIEWER, read_tonight, lambda it: it.vendors, "Tonight"),)
FORMS = ()
