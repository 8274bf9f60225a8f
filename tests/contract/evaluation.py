"""What a filter and a sort mean, said a second time in plain Python over the JSON that the service shows."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

Record = Mapping[str, Any]

CLAUSE = re.compile(r" *([\w.-]+) *(!=|>=|<=|=|>|<|~) *'((?:[^']|'')*)' *", re.ASCII)
JOIN = re.compile("(AND|OR)")
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
MILLISECOND = timedelta(milliseconds=1)
DAY = timedelta(days=1)


def select(records: list[dict[str, Any]], text: str, kinds: Mapping[str, str]) -> list[str]:
    """The ids of the records for which a filter holds, in their order."""
    first = CLAUSE.match(text)
    assert first is not None, text
    join = JOIN.match(text, first.end())
    if join is None:
        assert first.end() == len(text), text
        return [record["sourcedId"] for record in records if holds(record, *first.groups(), kinds)]
    second = CLAUSE.fullmatch(text, join.end())
    assert second is not None, text
    combine = all if join[0] == "AND" else any
    return [
        record["sourcedId"]
        for record in records
        if combine([holds(record, *clause.groups(), kinds) for clause in (first, second)])
    ]


def holds(record: Record, name: str, sign: str, quoted: str, kinds: Mapping[str, str]) -> bool:
    """Whether one clause holds for a record."""
    wanted = quoted.replace("''", "'")
    kind = kinds[name]
    if sign == "!=":
        return not holds(record, name, "=", quoted, kinds)
    values = values_at(record, name)
    if kind == "texts":
        items = [item.strip(" ") for item in wanted.split(",")]
        return values != [] and (all if sign == "=" else any)(item in values for item in items)
    return any(compare(kind.removeprefix("many "), value, sign, wanted) for value in values)


def compare(kind: str, value: str, sign: str, wanted: str) -> bool:
    """One value against one: the days and instants by time, all else by code point."""
    if kind == "instant":
        return compare_instant(to_instant(value), sign, wanted)
    if sign == "~":
        return fold(wanted) in fold(value)
    if kind == "day":
        return OPERATORS[sign](date.fromisoformat(value), date.fromisoformat(wanted))
    return OPERATORS[sign](value, wanted)


def compare_instant(value: datetime, sign: str, wanted: str) -> bool:
    """A date alone is its first instant for `>`, `>=` and `<`, and all of its day for `=` and `<=`."""
    first = to_instant(wanted)
    length = DAY if len(wanted) == 10 else MILLISECOND
    if sign == "=":
        return first <= value < first + length
    if sign == "<=":
        return value < first + length
    return OPERATORS[sign](value, first)


def to_instant(text: str) -> datetime:
    """The moment, cut to milliseconds; UTC where no offset is written."""
    moment = datetime.fromisoformat(text)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def fold(text: str) -> str:
    """Without case, letter by letter."""
    return "".join(letter.lower() if len(letter.lower()) == 1 else "i" for letter in text).replace("ς", "σ")


def values_at(record: Record, name: str) -> list[str]:
    """All values that a dotted name reaches; a key of metadata may have dots of its own."""
    found: list[Any] = [record]
    for part in name.split(".", 1) if name.startswith("metadata.") else name.split("."):
        found = [item[part] for item in found if part in item]
        found = [inner for item in found for inner in (item if isinstance(item, list) else [item])]
    return found


def sort(records: list[dict[str, Any]], name: str, descending: bool) -> list[str]:
    """The ids in the order of a field by code point: absent values last, ties by sourcedId, and all of it reversed."""

    def place(record: Record) -> tuple[bool, str, str]:
        values = values_at(record, name)
        return values == [], values[0] if values else "", record["sourcedId"]

    return [record["sourcedId"] for record in sorted(records, key=place, reverse=descending)]
