"""Masks of data frames: the rows of a pandas or polars frame that satisfy a checked expression.

A mask asks the predicate for each row, so that it has the same meaning. Only the columns of the expression are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from oneroster_filter.check import TypedExpr
from oneroster_filter.errors import ColumnError
from oneroster_filter.nodes import clauses
from oneroster_filter.predicate import predicate

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


def pandas_mask(typed: TypedExpr, frame: pd.DataFrame) -> pd.Series[bool]:
    """Find the rows of a pandas frame that satisfy a checked expression: `frame[pandas_mask(typed, frame)]`.

    Args:
        typed: What `check` returned.
        frame: A frame with a column for each field of the expression. A dotted field has a column with exactly its
            name, or its first name is a column of dicts or of lists of dicts. NaN, NaT, None and NA are absent values.

    Returns:
        A Series of bools with the index of the frame.

    Raises:
        ColumnError: A field has no column, or more than one.
        RecordError: A value is not of its field's kind.
    """
    import pandas as pd

    names = _find_columns(typed, list(frame.columns))
    rows = _test_rows(typed, {name: frame[name] for name in names})
    return pd.Series(rows, index=frame.index, dtype=bool)


def polars_mask(typed: TypedExpr, frame: pl.DataFrame) -> pl.Series:
    """Find the rows of a polars frame that satisfy a checked expression: `frame.filter(polars_mask(typed, frame))`.

    Args:
        typed: What `check` returned.
        frame: A frame with a column for each field of the expression. A dotted field has a column with exactly its
            name, or its first name is a column of structs or of lists of structs. Null and NaN are absent values.

    Returns:
        A Boolean Series.

    Raises:
        ColumnError: A field has no column.
        RecordError: A value is not of its field's kind.
    """
    import polars as pl

    names = _find_columns(typed, frame.columns)
    rows = _test_rows(typed, {name: frame[name].to_list() for name in names})
    return pl.Series(rows, dtype=pl.Boolean)


def _find_columns(typed: TypedExpr, columns: list[Any]) -> list[str]:
    names = []
    for clause in clauses(typed):
        name = clause.field if clause.field in columns else clause.path[0]
        if columns.count(name) != 1:
            raise ColumnError(clause.field, "there is no column for this field, or more than one")
        names.append(name)
    return names


def _test_rows(typed: TypedExpr, columns: Mapping[str, Iterable[Any]]) -> list[bool]:
    test = predicate(typed)
    return [test(dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]
