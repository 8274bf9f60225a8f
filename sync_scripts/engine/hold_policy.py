"""The hold policy. A run is held if it would delete or change too many records, or reject too many rows, or if an
approved run would delete, change or reject more than its report showed to the operator."""

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
    """The limits of a run: the largest parts of a type's active records that it may mark as deleted and change, and the
    largest part of the type's rows that it may reject, in percent. The limits apply to types with at least
    `least_records` active records or rows."""

    tombstones_percent: int
    changes_percent: int
    rejected_percent: int
    least_records: int

    @classmethod
    def of(cls, settings: Settings) -> Limits:
        """The limits of feeds without limits of their own."""
        return cls(
            settings.hold_tombstones_percent,
            settings.hold_changes_percent,
            settings.hold_rejected_percent,
            settings.hold_least_records,
        )


def read_limits(connection: Connection, feed_id: int, default: Limits) -> Limits:
    """The limits of a feed: each its own, or the default where the feed has none."""
    own = connection.execute(
        select(feeds.c.hold_tombstones_percent, feeds.c.hold_changes_percent, feeds.c.hold_rejected_percent).where(
            feeds.c.id == feed_id
        )
    ).one()
    return Limits(
        default.tombstones_percent if own.hold_tombstones_percent is None else own.hold_tombstones_percent,
        default.changes_percent if own.hold_changes_percent is None else own.hold_changes_percent,
        default.rejected_percent if own.hold_rejected_percent is None else own.hold_rejected_percent,
        default.least_records,
    )


def find_excess(counts: Mapping[str, Counts], limits: Limits) -> Iterator[str]:
    """One sentence for each limit that the counts of a type exceed. A type of which every row is rejected exceeds it,
    however few they are."""
    for name, count in counts.items():
        least, is_whole = limits.least_records, count.refused == count.delivered
        for number, of, percent, needed, words in (
            (count.tombstoned, count.stored, limits.tombstones_percent, least, "would vanish"),
            (count.changed, count.stored, limits.changes_percent, least, "would change"),
            (count.refused, count.delivered, limits.rejected_percent, 1 if is_whole else least, "are rejected"),
        ):
            if of >= needed and number * 100 > percent * of:
                yield f"{number:,} of {of:,} {name} {words}, more than {percent}%"


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
        """One sentence for each type of which the run would delete, change or reject more than its report showed."""
        for name, count in counts.items():
            shown = self.counts.get(name, {})
            for number, of, key, words in (
                (count.tombstoned, count.stored, "tombstoned", "would vanish"),
                (count.changed, count.stored, "changed", "would change"),
                (count.refused, count.delivered, "refused", "are rejected"),
            ):
                before = shown.get(key, 0)
                if number > before:
                    yield f"{number:,} of {of:,} {name} {words}, not {before:,} as the run {self.run} showed"


def read_held_run(connection: Connection, feed_id: int, run: int) -> HeldRun:
    """The held run of a feed with this number. Raises CommandError if the feed has no such held run."""
    own = (sync_runs.c.id == run, sync_runs.c.feed_id == feed_id, sync_runs.c.outcome == HELD)
    row = connection.execute(select(sync_runs.c.kept_digest, sync_runs.c.counts).where(*own)).one_or_none()
    if row is None:
        raise CommandError(NOT_HELD.format(run))
    return HeldRun(run, row.kept_digest, row.counts)
