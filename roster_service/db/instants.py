"""Instants as the interfaces write them."""

from __future__ import annotations

from datetime import UTC, datetime


def format_instant(instant: datetime) -> str:
    """Returns an instant as the interfaces write it: ISO 8601, UTC, with milliseconds and `Z`."""
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
