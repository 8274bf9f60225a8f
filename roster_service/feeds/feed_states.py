"""The names, states and pauses of feeds.

Vendors go on reading the roster as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from roster_service.db.instants import describe_day
from roster_service.db.tables import feeds
from roster_service.errors import CommandError

FEED_NAME_LENGTH = 63


def require_feed_name(name: str) -> None:
    """Raises CommandError for a name that is not valid for a feed, also for one that a path or a command line takes for
    something else."""
    if "/" in name or ".." in name or name.startswith(("-", ".")):
        raise CommandError("a feed's name has no / and no .. in it, and does not begin with - or .")
    if not name.strip() or len(name) > FEED_NAME_LENGTH or not name.isprintable() or name != name.strip():
        raise CommandError(f"a feed's name has 1 to {FEED_NAME_LENGTH} printable characters, without spaces around it")


# The source of the run that removes a feed, and what is said of that run, which has loaded no export.
REMOVAL = "roster feed remove"
REMOVAL_WORDS = "the feed was removed"


class FeedState(StrEnum):
    """The state of a feed. The row of a removed feed stays, because its runs refer to it."""

    # A loader named it, and no run of it was applied yet: its next run may be of another format.
    TRIED = "tried"
    # A command added it, or a run of it was applied.
    ADDED = "added"
    # No loader adds it again, because an old script must not bring its records back.
    REMOVED = "removed"


def list_feed_ids(connection: sa.Connection) -> list[int]:
    """Lists the ids of all feeds, in every state, in ascending order."""
    return list(connection.scalars(sa.select(feeds.c.id).order_by(feeds.c.id)))


def find_listed_feed(connection: sa.Connection, name: str) -> sa.Row[Any]:
    """Returns the row of a feed, also of a removed one. Raises CommandError if there is none."""
    found = connection.execute(sa.select(feeds).where(feeds.c.name == name)).one_or_none()
    if found is None:
        raise CommandError(f"there is no feed {name}; `roster feed list` shows all")
    return found


# The settings of a feed as the change log has them.
_SETTINGS = (
    feeds.c.format,
    feeds.c.path,
    feeds.c.enabled,
    feeds.c.state,
    feeds.c.hold_tombstones_percent,
    feeds.c.hold_changes_percent,
    feeds.c.hold_rejected_percent,
    feeds.c.marker,
    feeds.c.strict,
    # A mapping has hundreds of lines: its hash says whether it is another one.
    sa.func.md5(feeds.c.words).label("words_md5"),
    sa.func.to_char(feeds.c.pause_from, "YYYY-MM-DD").label("pause_from"),
    sa.func.to_char(feeds.c.pause_until, "YYYY-MM-DD").label("pause_until"),
    feeds.c.pause_reason,
)


def read_feed_settings(connection: sa.Connection, name: str) -> dict[str, Any] | None:
    """Reads the settings of a feed, also of a removed one, for the change log; None if there is none."""
    found = connection.execute(sa.select(*_SETTINGS).where(feeds.c.name == name)).mappings().one_or_none()
    return None if found is None else dict(found)


def read_added_feed(connection: sa.Connection, name: str) -> dict[str, Any] | None:
    """Reads the settings of a feed, as the state before it was added: None for one that a loader only tried."""
    found = read_feed_settings(connection, name)
    return None if found is None or found["state"] == FeedState.TRIED else found


def find_feed(connection: sa.Connection, name: str) -> sa.Row[Any]:
    """Returns the row of a feed. Raises CommandError if there is none, or if it was removed."""
    found = find_listed_feed(connection, name)
    if found.state == FeedState.REMOVED:
        raise CommandError(f"the feed {name} was removed; `roster feed add {name}` takes it back")
    return found


@dataclass(frozen=True)
class Pause:
    """A pause of a feed. `first`, `last`: its first and its last day, in the time zone of the district."""

    first: date
    last: date
    reason: str

    def covers(self, day: date) -> bool:
        """Returns whether nothing is loaded on a day."""
        return self.first <= day <= self.last

    def describe(self) -> str:
        """Returns the days. The reason is not for every operator, and for no log: it may name a person."""
        first, last = describe_day(self.first), describe_day(self.last)
        return f"on {first}" if first == last else f"from {first} to {last}"

    def announce(self, day: date, before: date) -> str | None:
        """Returns what to say on a day: on the day before the pause, and on its last day, or on the first day after
        these on which something is said. `before`: the day on which something was said last."""
        last = describe_day(self.last)
        if before < self.last <= day:
            is_last = day == self.last
            return "the pause ends today; the next night loads again" if is_last else f"the pause has ended on {last}"
        # The longest pause begins on the first day there is, which has none before it.
        if before + timedelta(days=1) < self.first <= day + timedelta(days=1):
            first = "tomorrow" if day < self.first else describe_day(self.first)
            return f"from {first} to {last}, nothing is loaded: {self.reason}"
        return None


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
