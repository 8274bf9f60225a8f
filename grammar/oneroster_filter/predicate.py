"""Compiles a checked expression to a Python function, with the same meaning as its SQL."""

import json
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time
from typing import Any, TypeAlias

from oneroster_filter.check import TypedClause, TypedExpr
from oneroster_filter.errors import RecordError
from oneroster_filter.field_types import Kind
from oneroster_filter.folding import fold
from oneroster_filter.nodes import Operator, fold_tree
from oneroster_filter.values import UnreadableError, read_day, read_flag, read_instant, to_utc

Record: TypeAlias = Mapping[str, Any]
Test: TypeAlias = Callable[[Record], bool]


def predicate(typed: TypedExpr) -> Test:
    """Compile a checked expression to a function that returns whether a record satisfies it.

    Args:
        typed: What `check` returned.

    Returns:
        A function of one record, a mapping such as JSON gives. A dotted field is an entry with exactly this name, or a
        path through nested mappings and lists. Values are in the wire format ("true", "2026-11-21T02:00:00.000Z") or
        Python objects (True, a datetime, a date); a datetime without a time zone is in UTC. None and missing entries
        are absent values. The function raises `RecordError` for a value that is not of its field's kind.
    """
    return fold_tree(typed, _compile_clause, _join_all, _join_any)


def _join_all(tests: Sequence[Test]) -> Test:
    return lambda record: all(test(record) for test in tests)


def _join_any(tests: Sequence[Test]) -> Test:
    return lambda record: any(test(record) for test in tests)


def _compile_clause(clause: TypedClause) -> Test:
    negated = clause.operator is Operator.NOT_EQUAL
    holds = COMPARISONS[clause.type.kind, Operator.EQUAL if negated else clause.operator]
    read = READERS[clause.type.kind]

    def test(record: Record) -> bool:
        flat = clause.field in record
        found = _find_values(record[clause.field] if flat else record, () if flat else clause.path, clause)
        return negated != any(holds(_read(read, value, clause.field), clause.value) for value in found)

    return test


def _find_values(value: Any, path: tuple[str, ...], clause: TypedClause) -> Iterator[Any]:
    """Yield every value at the end of a path; none where the value or a step of the path is absent."""
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


def _is_one_value(value: Any, kind: Kind) -> bool:
    return kind is Kind.TEXTS and not any(isinstance(item, LIST_TYPES) for item in value)


def _read(read: Callable[[Any], Any], value: Any, field: str) -> Any:
    try:
        return read(value)
    except (UnreadableError, OverflowError):
        raise RecordError(field, "the record's value is not of the field's kind", value) from None


def _read_text(value: Any) -> str:
    if isinstance(value, (bool, int, float)):
        return json.dumps(value)
    return _require_text(value)


def _read_flag(value: Any) -> bool:
    return value if isinstance(value, bool) else read_flag(_require_text(value))


def _read_instant(value: Any) -> datetime:
    if isinstance(value, datetime):
        return to_utc(value)
    if isinstance(value, date):
        return datetime.combine(value, time(), UTC)
    return read_instant(_require_text(value))


def _read_day(value: Any) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    return read_day(_require_text(value))


def _read_texts(value: Any) -> frozenset[str]:
    if not isinstance(value, LIST_TYPES):
        raise UnreadableError("not-of-kind")
    return frozenset(_require_text(item) for item in value if item is not None)


def _require_text(value: Any) -> str:
    if not isinstance(value, str):
        raise UnreadableError("not-of-kind")
    return value


LIST_TYPES = (list, tuple, set, frozenset)
"""The types that are a list in a record."""

READERS: dict[Kind, Callable[[Any], Any]] = {
    Kind.TEXT: _read_text,
    Kind.FLAG: _read_flag,
    Kind.INSTANT: _read_instant,
    Kind.DAY: _read_day,
    Kind.TEXTS: _read_texts,
}
"""The reader of a record's value for each kind."""

_IN_ORDER = {
    Operator.EQUAL: operator.eq,
    Operator.GREATER: operator.gt,
    Operator.GREATER_OR_EQUAL: operator.ge,
    Operator.LESS: operator.lt,
    Operator.LESS_OR_EQUAL: operator.le,
}

COMPARISONS: dict[tuple[Kind, Operator], Callable[[Any, Any], bool]] = {
    **{(kind, symbol): compare for kind in (Kind.TEXT, Kind.DAY) for symbol, compare in _IN_ORDER.items()},
    (Kind.TEXT, Operator.CONTAINS): lambda text, value: fold(value) in fold(text),
    (Kind.FLAG, Operator.EQUAL): operator.is_,
    (Kind.INSTANT, Operator.EQUAL): lambda moment, span: span.first <= moment <= span.last,
    (Kind.INSTANT, Operator.GREATER): lambda moment, span: moment > span.last,
    (Kind.INSTANT, Operator.GREATER_OR_EQUAL): lambda moment, span: moment >= span.first,
    (Kind.INSTANT, Operator.LESS): lambda moment, span: moment < span.first,
    (Kind.INSTANT, Operator.LESS_OR_EQUAL): lambda moment, span: moment <= span.last,
    (Kind.TEXTS, Operator.EQUAL): lambda items, wanted: items.issuperset(wanted),
    (Kind.TEXTS, Operator.CONTAINS): lambda items, wanted: not items.isdisjoint(wanted),
}
"""The comparison of a record's value with the filter's value; `!=` is the negation of `=`."""
