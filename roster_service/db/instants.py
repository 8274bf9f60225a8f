"""Instants as the interfaces write them, and as people read them."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo


def format_instant(instant: datetime) -> str:
    """Returns an instant as the interfaces write it: ISO 8601, UTC, with milliseconds and `Z`."""
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def describe_instant(instant: datetime | str, zone: tzinfo | None) -> str:
    """Returns an instant as people read it: `25 Nov 2026, 10:02`. `instant`: a text is one of ISO 8601; `zone`: their
    time zone; here and below, None is that of the machine."""
    at = (datetime.fromisoformat(instant) if isinstance(instant, str) else instant).astimezone(zone)
    return f"{describe_day(at)}, {at:%H:%M}"


def describe_day(day: date) -> str:
    """Returns a day as people read it: `25 Nov 2026`."""
    return f"{day.day} {day:%b %Y}"


def describe_purge(marked: datetime, retention_days: int, zone: tzinfo | None) -> str:
    """Returns when the purge deletes what was marked as deleted at an instant: a purge that runs at once, or the first
    one of the night after."""
    return f"on {describe_day((marked + timedelta(days=retention_days)).astimezone(zone))} or in the night after it"


def find_now(zone: tzinfo | None) -> datetime:
    """Returns the present instant in a time zone."""
    return datetime.now(UTC).astimezone(zone)


def find_today(zone: tzinfo | None) -> date:
    """Returns the present day in a time zone."""
    return find_now(zone).date()


def begin_day(day: date, zone: tzinfo | None) -> datetime:
    """Returns the instant at which a day begins in a time zone; the first of all for a day that begins before it."""
    try:
        return datetime.combine(day, time.min, zone).astimezone(UTC)
    except (OverflowError, ValueError):
        return datetime.min.replace(tzinfo=UTC)


def name_zone(zone: tzinfo | None) -> str:
    """Returns the name of a time zone."""
    return zone.key if isinstance(zone, ZoneInfo) else str(find_now(zone).tzname())
