"""The hold policy. A run is held if it would delete or change too many records, or if an approved run would delete or
change more records than its report showed to the operator."""

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
    """The limits of a run: the largest parts of a type's active records that it may mark as deleted and change, in
    percent. The limits apply to types with at least `least_records` active records."""

    tombstones_percent: int
    changes_percent: int
    least_records: int

    @classmethod
    def of(cls, settings: Settings) -> Limits:
        """The limits of feeds without limits of their own."""
        return cls(settings.hold_tombstones_percent, settings.hold_changes_percent, settings.hold_least_records)


def read_limits(connection: Connection, feed_id: int, default: Limits) -> Limits:
    """The limits of a feed: each its own, or the default where the feed has none."""
    own = connection.execute(
        select(feeds.c.hold_tombstones_percent, feeds.c.hold_changes_percent).where(feeds.c.id == feed_id)
    ).one()
    return Limits(
        default.tombstones_percent if own.hold_tombstones_percent is None else own.hold_tombstones_percent,
        default.changes_percent if own.hold_changes_percent is None else own.hold_changes_percent,
        default.least_records,
    )


def find_excess(counts: Mapping[str, Counts], limits: Limits) -> Iterator[str]:
    """One sentence for each limit that the counts of a type exceed."""
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
    """A held run as its report showed it to the operator: the digest of its export, and the counts of each type."""

    run: int
    digest: bytes | None
    counts: Mapping[str, Mapping[str, int]]

    def require_digest(self, digest: bytes | None) -> None:
        """Raises CommandError if the digest is not the one of the held export."""
        if digest is None or digest != self.digest:
            raise CommandError(
                f"the kept export of the run {self.run} is not what was held: somebody has changed it, or this "
                "version reads it differently; discard the run and load the export again"
            )

    def find_excess(self, counts: Mapping[str, Counts]) -> Iterator[str]:
        """One sentence for each type of which the run would delete or change more records than its report showed."""
        for name, count in counts.items():
            shown = self.counts.get(name, {})
            for number, before, words in (
                (count.tombstoned, shown.get("tombstoned", 0), "would vanish"),
                (count.changed, shown.get("changed", 0), "would change"),
            ):
                if number > before:
                    yield f"{number:,} of {count.stored:,} {name} {words}, not {before:,} as the run {self.run} showed"


def read_held_run(connection: Connection, feed_id: int, run: int) -> HeldRun:
    """The held run of a feed with this number. Raises CommandError if the feed has no such held run."""
    own = (sync_runs.c.id == run, sync_runs.c.feed_id == feed_id, sync_runs.c.outcome == HELD)
    row = connection.execute(select(sync_runs.c.kept_digest, sync_runs.c.counts).where(*own)).one_or_none()
    if row is None:
        raise CommandError(NOT_HELD.format(run))
    return HeldRun(run, row.kept_digest, row.counts)
