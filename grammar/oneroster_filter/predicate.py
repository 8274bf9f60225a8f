"""Compiles a checked expression to a Python function, with the same meaning as its SQL."""

import json
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time
from enum import Enum
from functools import partial
from typing import Any, TypeAlias
from uuid import UUID

from oneroster_filter.check import TypedClause, TypedExpr
from oneroster_filter.errors import RecordError
from oneroster_filter.field_types import Kind
from oneroster_filter.folding import fold
from oneroster_filter.nodes import Operator, fold_tree, require_clauses
from oneroster_filter.values import Span, UnreadableError, read_day, read_flag, read_instant, read_text, to_utc

Record: TypeAlias = Mapping[str, Any]
"""A record, as JSON gives it, or the row of a table."""

Test: TypeAlias = Callable[[Record], bool]
"""A function that returns whether a record satisfies an expression."""

Reader: TypeAlias = Callable[[Any], Any]
"""A function that reads a present value. It raises UnreadableError or OverflowError."""


def predicate(typed: TypedExpr) -> Test:
    """Compile a checked expression to a function that returns whether a record satisfies it.

    Args:
        typed: What `check` returned.

    Returns:
        A function of one record, a mapping such as JSON gives. A dotted field is an entry with exactly this name, or a
        path through nested mappings and lists. Values are in the wire format ("true", "2026-11-21T02:00:00.000Z") or
        Python objects (True, a datetime, a date); a datetime without a time zone is in UTC, and at midnight it is a day
        too. Values and arrays of NumPy are like those of Python. Missing entries, None, NaN, NaT and `pandas.NA` are
        absent values. The function raises `RecordError` for a value that is not of its field's kind.
    """
    require_clauses(typed, TypedClause, "check")
    return fold_tree(typed, _compile_clause, _join_all, _join_any)


# Loops, because `all` and `any` would make a generator for each record, which takes as long as a clause.
def _join_all(tests: Sequence[Test]) -> Test:
    def test_all(record: Record) -> bool:
        for test in tests:  # noqa: SIM110
            if not test(record):
                return False
        return True

    return test_all


def _join_any(tests: Sequence[Test]) -> Test:
    def test_any(record: Record) -> bool:
        for test in tests:  # noqa: SIM110
            if test(record):
                return True
        return False

    return test_any


def _compile_clause(clause: TypedClause) -> Test:
    field = clause.field
    negated = clause.operator is Operator.NOT_EQUAL
    holds = COMPARISONS[clause.type.kind, Operator.EQUAL if negated else clause.operator](clause.value)
    readers = READERS[clause.type.kind]
    readers_of_one = {} if clause.type.many else readers

    def test(record: Record) -> bool:
        value = record.get(field)
        read = readers_of_one.get(type(value))
        # Nearly every value takes this branch, which saves most of the time. NaN is not equal to itself.
        if read is not None and value == value:
            return holds(_read(read, value, field)) is not negated
        flat = field in record
        found = _find_values(value if flat else record, () if flat else clause.path, clause)
        return negated is not any(holds(_read(_find_reader(readers, value), value, field)) for value in found)

    return test


def _find_values(value: Any, path: tuple[str, ...], clause: TypedClause) -> Iterator[Any]:
    """Yield every value at the end of a path; none where the value or a step of the path is absent."""
    value = to_plain(value)
    if value is None:
        return
    if clause.type.many and isinstance(value, LIST_TYPES) and (path or not _is_one_value(value, clause.type.kind)):
        for item in value:
            yield from _find_values(item, path, clause)
    elif not path:
        yield value
    elif isinstance(value, Mapping):
        yield from _find_values(value.get(path[0]), path[1:], clause)
    else:
        raise RecordError(clause.field, f"{path[0]} cannot be found in a value that is not an object", value)


def to_plain(value: Any) -> Any:
    """Convert a value of a record, also of NumPy or pandas, to one of Python: None for NaN, NaT and `pandas.NA`, a list
    for an array."""
    value = value.tolist() if hasattr(value, "tolist") else value
    # NaN and NaT are not equal to themselves, and each comparison of NA is NA.
    unequal = value != value
    return None if unequal is True or (unequal is value and value is not False) else value


def _is_one_value(value: Any, kind: Kind) -> bool:
    return kind is Kind.TEXTS and not any(isinstance(to_plain(item), LIST_TYPES) for item in value)


def _read(read: Reader, value: Any, field: str) -> Any:
    try:
        return read(value)
    except (UnreadableError, OverflowError):
        raise RecordError(field, "the record's value is not of the field's kind", value) from None


def _find_reader(readers: Mapping[type, Reader], value: Any) -> Reader:
    return next((readers[type_] for type_ in type(value).__mro__ if type_ in readers), _refuse_value)


def _refuse_value(value: Any) -> Any:
    raise UnreadableError("not-of-kind")


def _read_member(member: Enum) -> str:
    return member.value if isinstance(member.value, str) else json.dumps(member.value)


def _read_moment(value: datetime) -> datetime:
    # A timestamp of pandas has nanoseconds, which are cut off like all that is finer than a millisecond.
    return to_utc(value if type(value) is datetime else datetime.combine(value.date(), value.timetz()))


def _read_first_instant(value: date) -> datetime:
    return datetime.combine(value, time(), UTC)


def _read_midnight(value: datetime) -> date:
    """Read a day from a data frame, which stores it as a datetime."""
    if value.tzinfo is not None or value.time() != time():
        raise UnreadableError("not-a-day")
    return value.date()


def _read_items(value: Any) -> frozenset[str]:
    return frozenset(_require_text(item) for item in map(to_plain, value) if item is not None)


def _require_text(value: Any) -> str:
    if not isinstance(value, str):
        raise UnreadableError("not-of-kind")
    return value


LIST_TYPES = (list, tuple, set, frozenset)
"""The types that are a list in a record."""

READERS: dict[Kind, dict[type, Reader]] = {
    Kind.TEXT: {str: read_text, bool: json.dumps, int: json.dumps, float: json.dumps, Enum: _read_member, UUID: str},
    Kind.FLAG: {bool: bool, str: read_flag},
    Kind.INSTANT: {datetime: _read_moment, date: _read_first_instant, str: read_instant},
    Kind.DAY: {date: lambda value: value, datetime: _read_midnight, str: read_day},
    Kind.TEXTS: dict.fromkeys(LIST_TYPES, _read_items),
}
"""The readers of a record's value for each kind, by the type of the value or its nearest base class."""

IN_ORDER: dict[Operator, Callable[[Any, Any], bool]] = {
    # The filter's value is the first operand.
    Operator.EQUAL: operator.eq,
    Operator.GREATER: operator.lt,
    Operator.GREATER_OR_EQUAL: operator.le,
    Operator.LESS: operator.gt,
    Operator.LESS_OR_EQUAL: operator.ge,
}


def _compare_in_order(compare: Callable[[Any, Any], bool]) -> Callable[[Any], Callable[[Any], bool]]:
    return lambda wanted: partial(compare, wanted)


def _compare_contains(wanted: str) -> Callable[[str], bool]:
    folded = fold(wanted)
    return lambda text: folded in fold(text)


def _compare_within(span: Span) -> Callable[[datetime], bool]:
    return lambda moment: span.first <= moment <= span.last


COMPARISONS: dict[tuple[Kind, Operator], Callable[[Any], Callable[[Any], bool]]] = {
    **{(kind, sign): _compare_in_order(of) for kind in (Kind.TEXT, Kind.DAY) for sign, of in IN_ORDER.items()},
    (Kind.TEXT, Operator.CONTAINS): _compare_contains,
    (Kind.FLAG, Operator.EQUAL): lambda wanted: partial(operator.is_, wanted),
    (Kind.INSTANT, Operator.EQUAL): _compare_within,
    (Kind.INSTANT, Operator.GREATER): lambda span: partial(operator.lt, span.last),
    (Kind.INSTANT, Operator.GREATER_OR_EQUAL): lambda span: partial(operator.le, span.first),
    (Kind.INSTANT, Operator.LESS): lambda span: partial(operator.gt, span.first),
    (Kind.INSTANT, Operator.LESS_OR_EQUAL): lambda span: partial(operator.ge, span.last),
    (Kind.TEXTS, Operator.EQUAL): lambda wanted: frozenset(wanted).issubset,
    (Kind.TEXTS, Operator.CONTAINS): lambda wanted: lambda items: not items.isdisjoint(wanted),
}
"""The comparison of each kind and operator: a function of the filter's value that returns one of the record's value.
There is none for `!=`, because it is the negation of `=`."""
