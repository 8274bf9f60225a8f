"""Reads the values of clauses: one reader for each kind.

Instants are compared as whole milliseconds, which is the precision of responses: finer digits are cut off in the filter
and in the records. Otherwise a record with microseconds would not equal its own `dateLastModified` in responses
(`.123Z`), and every `dateLastModified>` with that value would return the record again.
"""

import re
from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TypeAlias

from oneroster_filter.field_types import Kind
from oneroster_filter.nodes import Operator

MILLISECOND = timedelta(microseconds=999)
"""The difference between the first and the last microsecond of a millisecond."""

DAY = timedelta(days=1, microseconds=-1)
"""The difference between the first and the last microsecond of a day."""

_DAY_TEXT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INSTANT_TEXT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?"
)
_FLAGS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Span:
    """The time that an instant in a filter covers: a millisecond or a day.

    Args:
        first: Its first microsecond, in UTC.
        last: Its last microsecond, in UTC.
    """

    first: datetime
    last: datetime

    def __str__(self) -> str:
        return f"{self.first.isoformat()} to {self.last.isoformat()}"


Value: TypeAlias = str | bool | Span | date | tuple[str, ...]
"""The value of a checked clause, by kind: TEXT str, FLAG bool, INSTANT Span, DAY date, TEXTS tuple."""


class UnreadableError(ValueError):
    """A text is not a value of the kind; `code` is that of the refusal, `why` the end of its sentence, or empty."""

    def __init__(self, code: str, why: str = "") -> None:
        super().__init__(code)
        self.code = code
        self.why = why


def read_text(text: str) -> str:
    """Return the text itself: every text is a value of kind TEXT."""
    return text


def read_flag(text: str) -> bool:
    """Read `true` or `false`, in lower case as in the standard."""
    if text not in _FLAGS:
        raise UnreadableError("not-a-flag")
    return _FLAGS[text]


def read_day(text: str) -> date:
    """Read a day: `2026-11-21`."""
    if not _DAY_TEXT.fullmatch(text):
        raise UnreadableError("not-a-day")
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UnreadableError("not-a-day", _explain_part(text)) from None


def read_instant(text: str) -> datetime:
    """Read an instant and convert it to UTC: `2026-11-21T02:00:00.000Z`, with any offset, or without one (UTC).

    A day alone gives its first instant.
    """
    try:
        # `fromisoformat` alone would accept more: weeks, instants without separators, other digits.
        if _DAY_TEXT.fullmatch(text) or _INSTANT_TEXT.fullmatch(text):
            return to_utc(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        pass
    raise UnreadableError("not-an-instant", _explain_part(text))


_PARTS = re.compile(
    r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)"
    r"(?:[T ](?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?![0-9]))?)?",
    re.ASCII,
)
_BOUNDS = {"year": (1, 9999), "month": (1, 12), "day": (1, 31), "hour": (0, 23), "minute": (0, 59), "second": (0, 59)}


def _explain_part(text: str) -> str:
    """Name the part of a time that no calendar or clock has; an empty text where it is none of these."""
    found = _PARTS.match(text)
    parts = {name: int(digits) for name, digits in found.groupdict().items() if digits} if found else {}
    for name, number in parts.items():
        least, most = _BOUNDS[name]
        if not least <= number <= most:
            return f": there is no {name} {number:02}"
    if parts and parts["day"] > monthrange(parts["year"], parts["month"])[1]:
        return f": there is no day {parts['day']} in this month"
    return ""


def read_span(text: str) -> Span:
    """Read an instant as its millisecond, or a day as the whole day."""
    moment = read_instant(text)
    if _DAY_TEXT.fullmatch(text):
        return Span(moment, moment + DAY)
    return make_millisecond(moment)


def read_texts(text: str) -> tuple[str, ...]:
    """Read a list: items separated by commas, without the spaces around them."""
    items = tuple(item.strip(" ") for item in text.split(","))
    if "" in items:
        raise UnreadableError("empty-item")
    return items


def to_utc(moment: datetime) -> datetime:
    """Convert a datetime to UTC; one without a time zone is in UTC already."""
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def make_millisecond(moment: datetime) -> Span:
    """Return the millisecond that contains the instant."""
    first = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    return Span(first, first + MILLISECOND)


READERS: dict[Kind, Callable[[str], Value]] = {
    Kind.TEXT: read_text,
    Kind.FLAG: read_flag,
    Kind.INSTANT: read_span,
    Kind.DAY: read_day,
    Kind.TEXTS: read_texts,
}

FROM_FIRST_INSTANT = frozenset({Operator.GREATER, Operator.GREATER_OR_EQUAL, Operator.LESS})
"""The operators for which a day alone means its first millisecond. For the others it means the whole day."""


def read_value(kind: Kind, operator: Operator, text: str) -> Value:
    """Read the value of a clause.

    Raises:
        UnreadableError: The text is not a value of the kind.
    """
    if kind is Kind.INSTANT and operator in FROM_FIRST_INSTANT:
        return make_millisecond(read_instant(text))
    return READERS[kind](text)
