"""The first page: the last sync at a glance, and what a person must do first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from roster_service.auth.access_log.reports import UsageRow, read_usage
from roster_service.change_log.actors import OperatorRole
from roster_service.console.filters import to_segment
from roster_service.console.screen import Screen
from roster_service.console.visit import Visit
from roster_service.deliveries.accounts import WAITING, Delivery, list_deliveries
from roster_service.feeds.feed_conditions import Condition, list_conditions
from roster_service.feeds.feed_states import FeedState
from roster_service.feeds.feeds import Feed, list_feeds
from roster_service.feeds.figures import read_ordering_size
from roster_service.feeds.held_runs import HELD
from roster_service.feeds.run_history import FinishedRun, list_latest_runs
from roster_service.feeds.run_outcomes import Colour

# The runs of a small chart.
CHARTED_RUNS = 30
# A card shows the types of records that districts count in.
CHARTED = ("users", "classes", "enrollments")


@dataclass(frozen=True)
class Task:
    """A thing that a person must do. `remedy`: how; `path`: of the page for it, below `/console`."""

    text: str
    remedy: str | None
    path: str


@dataclass(frozen=True)
class FeedCard:
    """A feed with its last runs. `conditions`: what is said of it, the gravest first; `charts`: by type of record, the
    number of records after each of the last good runs, the oldest first; `tasks`: what a person must do about it."""

    feed: Feed
    conditions: Sequence[Condition]
    last: FinishedRun | None
    charts: Mapping[str, Sequence[int]]
    tasks: Sequence[Task]


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
    """The content of the page. `is_whole`: whether all that the exports have is loaded; `removed`: the number of feeds
    that were removed, which have no card; `ordering_bytes`: that the orderings take on disk; `is_live`: whether the
    page changes by itself."""

    tasks: Sequence[Task]
    cards: Sequence[FeedCard]
    is_whole: bool
    removed: int
    vendors: Sequence[ActiveVendor]
    ordering_bytes: int
    is_live: bool


def read_tonight(visit: Visit) -> Tonight:
    """Reads the health of every feed, the vendors of today, and the disk that the orderings take."""
    connection = visit.connection
    listed = list_feeds(connection)
    runs = list_latest_runs(connection, CHARTED_RUNS)
    cards = [
        _make_card(feed, runs.get(feed.name, ()), list_conditions(feed, visit.settings))
        for feed in listed
        if feed.state != FeedState.REMOVED
    ]
    said = [condition for card in cards for condition in card.conditions]
    return Tonight(
        tasks=[*(task for card in cards for task in card.tasks), *_list_delivery_tasks(list_deliveries(connection))],
        cards=sorted(cards, key=lambda card: (not card.tasks, card.feed.name)),
        is_whole=all(condition.colour == Colour.GOOD for condition in said),
        removed=len(listed) - len(cards),
        vendors=list(_sum_vendors(read_usage(connection, None, datetime.now(UTC).date()))),
        ordering_bytes=read_ordering_size(connection),
        # A held run without a task is one whose approval is under way.
        is_live=any(card.feed.is_running or (card.feed.held_run and not card.tasks) for card in cards),
    )


def _make_card(feed: Feed, runs: Sequence[FinishedRun], conditions: Sequence[Condition]) -> FeedCard:
    good = [run for run in runs if run.is_good]
    charts = {name: [run.records.get(name, 0) for run in good] for name in CHARTED}
    tasks = [_make_task(feed, condition) for condition in conditions if condition.needs]
    return FeedCard(feed, conditions, runs[-1] if runs else None, charts, tasks)


def _make_task(feed: Feed, condition: Condition) -> Task:
    own = f"/feeds/{to_segment(feed.name)}" if condition.run is None else f"/runs/{condition.run}"
    path = f"{own}/held" if condition.word == HELD else own
    return Task(f"{feed.name}: {condition.sentence}", condition.remedy, path)


def _list_delivery_tasks(found: Sequence[Delivery]) -> Iterator[Task]:
    """Yields a task for each file of a vendor that was not sent."""
    for delivery in found:
        if delivery.needs:
            remedy = (
                "preview the file, and approve it" if delivery.state == WAITING else "it is tried again when it is due"
            )
            text = f"the file of {delivery.name} for {delivery.vendor}: {delivery.state}: {delivery.message}"
            yield Task(text, remedy, f"/vendors/{delivery.vendor_id}")


def _sum_vendors(rows: Sequence[UsageRow]) -> Iterator[ActiveVendor]:
    for vendor in sorted({row.vendor for row in rows}):
        own = [row for row in rows if row.vendor == vendor]

        def count(status: str, own: Sequence[UsageRow] = own) -> int:
            return sum(row.requests for row in own if row.status == status)

        total = sum(row.requests for row in own)
        yield ActiveVendor(vendor, total, sum(row.records for row in own), count("4xx"), count("5xx"))


SCREENS = (Screen("tonight", "", "Tonight", OperatorRole.VIEWER, read_tonight, lambda it: it.vendors, "Tonight"),)
FORMS = ()
