"""What the masks of pandas and polars share: finding the column of a clause, and the predicate for each value of it."""

from collections.abc import Iterable, Sequence
from typing import Any

from oneroster_filter.check import TypedClause
from oneroster_filter.errors import ColumnError
from oneroster_filter.predicate import predicate


def find_column(clause: TypedClause, columns: Sequence[Any]) -> tuple[Any, tuple[str, ...]]:
    """Find the column of a clause.

    Raises:
        ColumnError: There is no column, or more than one.
    """
    name, path = (clause.field, ()) if clause.field in columns else (clause.path[0], clause.path[1:])
    if columns.count(name) != 1:
        raise ColumnError(clause.field, "there is no column for this field, or more than one")
    return name, path


def test_values(clause: TypedClause, column: str, values: Iterable[Any]) -> list[bool]:
    """Return whether each value of a column satisfies a clause, for types that the frame cannot compare itself."""
    test = predicate(clause)
    return [test({column: value}) for value in values]
