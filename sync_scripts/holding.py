"""When a run is held: too much would vanish or change at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, select

from roster_service.db.tables import feeds
from roster_service.settings import Settings
from sync_scripts.changes import Counts


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
