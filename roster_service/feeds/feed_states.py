"""The names and states of feeds."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from roster_service.db.tables import feeds
from roster_service.errors import CommandError

FEED_NAME_LENGTH = 63


def require_feed_name(name: str) -> None:
    """Raises CommandError for a name that is not valid for a feed."""
    if not name.strip() or len(name) > FEED_NAME_LENGTH or not name.isprintable() or name != name.strip():
        raise CommandError(f"a feed's name has 1 to {FEED_NAME_LENGTH} printable characters, without spaces around it")


# The source of the run that removes a feed.
REMOVAL = "roster feed remove"


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
