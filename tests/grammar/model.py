"""What filters mean, in plain Python and without haste: the model with which every back end is compared.

It knows the records of `samples.py` alone, whose values are Python objects or absent.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from oneroster_filter import And, Kind, Operator, Or, fold
from oneroster_filter.typing import TypedClause, TypedExpr

from .samples import Record


def choose(records: Sequence[Record], wanted: Sequence[TypedExpr]) -> list[list[int]]:
    """For each expression, the places of the records that satisfy it."""
    return [[place for place, record in enumerate(records) if satisfies(record, expr)] for expr in wanted]


def satisfies(record: Record, expr: TypedExpr) -> bool:
    """Whether a record satisfies an expression."""
    if isinstance(expr, And):
        return all(satisfies(record, operand) for operand in expr.operands)
    if isinstance(expr, Or):
        return any(satisfies(record, operand) for operand in expr.operands)
    values = list(find_values(record, expr.path))
    if expr.operator is Operator.NOT_EQUAL:
        return not any(is_equal(value, expr) for value in values)
    return any(compare(value, expr) for value in values)


def find_values(value: Any, path: tuple[str, ...]) -> Iterator[Any]:
    """The present values at the end of a path; of a list on the way, those of its items."""
    if value is None:
        return
    if not path:
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from find_values(item, path)
    else:
        yield from find_values(value.get(path[0]), path[1:])


def is_equal(value: Any, clause: TypedClause) -> bool:
    """Whether a value equals that of the clause."""
    if clause.type.kind is Kind.INSTANT:
        return bool(clause.value.first <= value <= clause.value.last)
    if clause.type.kind is Kind.TEXTS:
        return all(item in value for item in clause.value)
    return bool(value == clause.value)


def compare(value: Any, clause: TypedClause) -> bool:
    """Whether a value satisfies the clause, whose operator is not `!=`."""
    if clause.operator is Operator.EQUAL:
        return is_equal(value, clause)
    if clause.operator is Operator.CONTAINS:
        if clause.type.kind is Kind.TEXTS:
            return any(item in value for item in clause.value)
        return fold(clause.value) in fold(value)
    first = last = clause.value
    if clause.type.kind is Kind.INSTANT:
        first, last = clause.value.first, clause.value.last
    return bool(
        {
            Operator.GREATER: value > last,
            Operator.GREATER_OR_EQUAL: value >= first,
            Operator.LESS: value < first,
            Operator.LESS_OR_EQUAL: value <= last,
        }[clause.operator]
    )
