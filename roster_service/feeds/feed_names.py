"""The names of feeds."""

from __future__ import annotations

from roster_service.errors import CommandError

FEED_NAME_LENGTH = 63


def require_feed_name(name: str) -> None:
    """Raises CommandError for a name that is not valid for a feed."""
    if not name.strip() or len(name) > FEED_NAME_LENGTH or not name.isprintable() or name != name.strip():
        raise CommandError(f"a feed's name has 1 to {FEED_NAME_LENGTH} printable characters, without spaces around it")
