"""The pauses of feeds: days on which the sync loads nothing, for instance the rollover of the school year.

Vendors go on reading the roster as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta

import sqlalchemy as sa

from roster_service.db.tables import feeds
from roster_service.errors import CommandError
from roster_service.feeds.feed_states import find_feed


@dataclass(frozen=True)
class Pause:
    """A pause of a feed. `first`, `last`: its first and its last day, in the time zone of the machine that syncs."""

    first: date
    last: date
    reason: str

    def covers(self, day: date) -> bool:
        """Returns whether nothing is loaded on a day."""
        return self.first <= day <= self.last

    def describe(self) -> str:
        """Returns the days and the reason."""
        return f"from {self.first} to {self.last}: {self.reason}"

    def announce(self, day: date) -> str | None:
        """Returns what to say on a day: on the day before the pause, and on its last day."""
        if day == self.first - timedelta(days=1):
            return f"from tomorrow to {self.last}, nothing is loaded: {self.reason}"
        if day == self.last:
            return "the pause ends today; the next night loads again"
        return None


def find_today() -> date:
    """Returns the day in the time zone of this machine."""
    return datetime.now().astimezone().date()


def make_pause(first: date | None, last: date | None, reason: str | None) -> Pause | None:
    """Returns the pause that the columns of a feed describe, if they do."""
    return None if first is None or last is None else Pause(first, last, reason or "")


def read_pause(connection: sa.Connection, feed_name: str) -> Pause | None:
    """Reads the pause of a feed, also one to come; None for a feed without one, and for one that does not exist."""
    row = connection.execute(
        sa.select(feeds.c.pause_from, feeds.c.pause_until, feeds.c.pause_reason).where(feeds.c.name == feed_name)
    ).one_or_none()
    return None if row is None else make_pause(*row)


def require_no_pause(connection: sa.Connection, feed_name: str, day: date) -> None:
    """Raises CommandError if the feed is paused on a day."""
    pause = read_pause(connection, feed_name)
    if pause is not None and pause.covers(day):
        raise CommandError(
            f"the feed {feed_name} is paused {pause.describe()}; `roster feed resume {feed_name}` ends the pause"
        )


def store_pause(connection: sa.Connection, feed_name: str, pause: Pause | None) -> None:
    """Sets the pause of a feed; None ends it. Raises CommandError if there is no such feed."""
    first, last, reason = (None, None, None) if pause is None else (pause.first, pause.last, pause.reason)
    row = sa.update(feeds).where(feeds.c.id == find_feed(connection, feed_name).id)
    connection.execute(row.values(pause_from=first, pause_until=last, pause_reason=reason))
