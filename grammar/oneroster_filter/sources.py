"""The sources of fields in a query: a column or an expression, or a `Through` for a field with many values."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from oneroster_filter.check import TypedClause
from oneroster_filter.errors import ColumnError
from oneroster_filter.nodes import Operator

Result = TypeVar("Result")


@dataclass(frozen=True)
class Through:
    """The source of a `many` field, whose values are in other rows.

    Args:
        element: The source of one value: `role.c.role`, or for a text of SQL `"role.role"`.
        wrap: Converts a condition on one value into a condition on the record, by an EXISTS around it.
    """

    element: Any
    wrap: Callable[[Any], Any]


def compile_clause(
    clause: TypedClause,
    columns: Mapping[str, Any] | Callable[[str], Any],
    compare: Callable[[TypedClause, Operator, Any], Result],
    negate: Callable[[Result], Result],
) -> Result:
    """Compile a clause with the source of its field. Of a field with many values, `!=` says that no value is equal.

    Raises:
        ColumnError: There is no source, or the field has many values and its source is no `Through`, or the reverse.
    """
    try:
        source = columns[clause.field] if isinstance(columns, Mapping) else columns(clause.field)
    except KeyError as error:
        raise ColumnError(clause.field, "there is no column for this field") from error
    if isinstance(source, Through) is not clause.type.many:
        raise ColumnError(clause.field, "a field with many values needs a Through, and other fields must not have one")
    if not isinstance(source, Through):
        return compare(clause, clause.operator, source)
    is_negated = clause.operator is Operator.NOT_EQUAL
    sign = Operator.EQUAL if is_negated else clause.operator
    wrapped: Result = source.wrap(compare(clause, sign, source.element))
    return negate(wrapped) if is_negated else wrapped
