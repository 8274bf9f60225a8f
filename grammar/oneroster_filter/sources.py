"""The sources of fields in a query: a column or an expression, or a `Through` for a field with many values."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from oneroster_filter.check import TypedClause
from oneroster_filter.errors import ColumnError


@dataclass(frozen=True)
class Through:
    """The source of a `many` field, whose values are in other rows.

    Args:
        element: The source of one value: `role.c.role`, or for a text of SQL `"role.role"`.
        wrap: Converts a condition on one value into a condition on the record, by an EXISTS around it.
    """

    element: Any
    wrap: Callable[[Any], Any]


def find_source(clause: TypedClause, columns: Mapping[str, Any] | Callable[[str], Any]) -> Any:
    """Find the source of the field of a clause.

    Args:
        clause: A checked clause.
        columns: A mapping or a function from the dotted name of a field to its source.

    Returns:
        The source: a `Through` if, and only if, the field has many values.

    Raises:
        ColumnError: There is no source, or the field has many values and its source is no `Through`, or the reverse.
    """
    try:
        source = columns[clause.field] if isinstance(columns, Mapping) else columns(clause.field)
    except KeyError as error:
        raise ColumnError(clause.field, "there is no column for this field") from error
    if isinstance(source, Through) is not clause.type.many:
        raise ColumnError(clause.field, "a field with many values needs a Through, and other fields must not have one")
    return source
