"""The filters of the templates: values as people read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def to_age(seconds: float | None) -> str:
    """Returns a number of seconds as its largest unit: `3 hours`."""
    if seconds is None:
        return "never"
    for size, name in UNITS:
        number = int(seconds // size)
        if number >= 1:
            return f"{number} {name}{'' if number == 1 else 's'}"
    return "just now"


def to_bytes(number: int) -> str:
    """Returns a number of bytes in the unit that suits it: `1.5 MB`."""
    size = float(number)
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def to_number(number: int | None) -> str:
    """Returns a whole number with commas between the thousands; None as a dash."""
    return "–" if number is None else f"{number:,}"


def to_instant(text: str | None) -> str:
    """Returns an instant of ISO 8601 as `2026-11-23 02:15 UTC`; None as a dash."""
    if text is None:
        return "–"
    return datetime.fromisoformat(text).astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


FILTERS: Mapping[str, Callable[[Any], str]] = {
    "age": to_age,
    "bytes": to_bytes,
    "number": to_number,
    "instant": to_instant,
}
