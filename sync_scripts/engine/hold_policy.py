"""When a run is held: too much would vanish or change at once, or more than a person was shown who approves it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, select

from roster_service.db.held_runs import HELD
from roster_service.db.tables import feeds, sync_runs
from roster_service.errors import CommandError
from roster_service.settings import Settings
from sync_scripts.applying.changes import Counts
from sync_scripts.engine.runs import NOT_HELD


@dataclass(frozen=True)
class Limits:
    """What a run may do to the records of a type, in percent of those that are active, where there are at least
    `least_records` of them."""

    tombstones_percent: int
    changes_percent: int
    least_records: int

    @classmethod
    def of(cls, settings: Settings) -> Limits:
        """The limits of feeds that have none of their own."""
        return cls(settings.hold_tombstones_percent, settings.hold_changes_percent, settings.hold_least_records)


def read_limits(connection: Connection, feed_id: int, default: Limits) -> Limits:
    """The limits of a feed: its own, where it has some."""
    own = connection.execute(
        select(feeds.c.hold_tombstones_percent, feeds.c.hold_changes_percent).where(feeds.c.id == feed_id)
    ).one()
    return Limits(
        default.tombstones_percent if own.hold_tombstones_percent is None else own.hold_tombstones_percent,
        default.changes_percent if own.hold_changes_percent is None else own.hold_changes_percent,
        default.least_records,
    )


def find_excess(counts: Mapping[str, Counts], limits: Limits) -> Iterator[str]:
    """Sentences about the types of which too much would vanish or change."""
    for name, count in counts.items():
        if count.stored < limits.least_records:
            continue
        for number, percent, words in (
            (count.tombstoned, limits.tombstones_percent, "would vanish"),
            (count.changed, limits.changes_percent, "would change"),
        ):
            if number * 100 > percent * count.stored:
                yield f"{number:,} of {count.stored:,} {name} {words}, more than {percent}%"


@dataclass(frozen=True)
class HeldRun:
    """What a person was shown of a held run, and approves: the digest of its export, and what it would do to the
    records of each type."""

    run: int
    digest: bytes | None
    counts: Mapping[str, Mapping[str, int]]

    def require_digest(self, digest: bytes | None) -> None:
        """Raises CommandError where this is not the digest of what was held."""
        if digest is None or digest != self.digest:
            raise CommandError(
                f"the kept export of the run {self.run} is not what was held: it was changed since then, or this "
                "version reads it otherwise; discard the run and load the export anew"
            )

    def find_excess(self, counts: Mapping[str, Counts]) -> Iterator[str]:
        """Sentences about the types of which more would vanish or change than was shown."""
        for name, count in counts.items():
            shown = self.counts.get(name, {})
            for number, before, words in (
                (count.tombstoned, shown.get("tombstoned", 0), "would vanish"),
                (count.changed, shown.get("changed", 0), "would change"),
            ):
                if number > before:
                    yield f"{number:,} of {count.stored:,} {name} {words}, not {before:,} as the run {self.run} showed"


def read_held_run(connection: Connection, feed_id: int, run: int) -> HeldRun:
    """What was shown of a held run of a feed. Raises CommandError where there is none."""
    own = (sync_runs.c.id == run, sync_runs.c.feed_id == feed_id, sync_runs.c.outcome == HELD)
    row = connection.execute(select(sync_runs.c.kept_digest, sync_runs.c.counts).where(*own)).one_or_none()
    if row is None:
        raise CommandError(NOT_HELD.format(run))
    return HeldRun(run, row.kept_digest, row.counts)
