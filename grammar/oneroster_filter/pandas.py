"""The mask of a pandas frame: the rows that satisfy a checked expression."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np
import pandas as pd

from oneroster_filter.check import TypedClause, TypedExpr
from oneroster_filter.field_types import Kind
from oneroster_filter.folding import fold
from oneroster_filter.frame_columns import find_column, test_values
from oneroster_filter.nodes import Operator, fold_tree, require_clauses
from oneroster_filter.predicate import IN_ORDER
from oneroster_filter.sql_templates import list_bound_values


def pandas_mask(typed: TypedExpr, frame: pd.DataFrame) -> pd.Series[bool]:
    """Find the rows of a pandas frame that satisfy a checked expression: `frame[pandas_mask(typed, frame)]`.

    Columns of texts, booleans, datetimes and days are compared by NumPy. For other columns, such as those of lists, of
    dicts, or of datetimes that are texts, the mask asks the predicate for each value.

    Args:
        typed: What `check` returned.
        frame: A frame with a column for each field of the expression. A number is compared as text, an integer in a
            column with gaps too. A dotted field has a column with exactly its name, or its first name is a column of
            dicts or of lists of dicts. NaN, NaT, None and NA are absent values.

    Returns:
        A Series of bools with the index of the frame.

    Raises:
        ColumnError: A field has no column, or more than one.
        RecordError: A value is not of its field's kind.
        TypeError: The expression is not checked.
    """
    require_clauses(typed, TypedClause, "check")
    names = list(frame.columns)

    def compile_clause(clause: TypedClause) -> Any:
        name, path = find_column(clause, names)
        column = _restore_integers(frame[name]) if clause.type.kind is Kind.TEXT else frame[name]
        is_negated = clause.operator is Operator.NOT_EQUAL
        found = None if path else _compare(clause, Operator.EQUAL if is_negated else clause.operator, column)
        if found is None:
            return np.array(test_values(clause, name, column), dtype=bool)
        return ~found if is_negated else found

    mask = fold_tree(
        typed,
        compile_clause,
        functools.partial(functools.reduce, operator.and_),
        functools.partial(functools.reduce, operator.or_),
    )
    return pd.Series(mask, index=frame.index, dtype=bool)


def _restore_integers(column: Any) -> Any:
    """Return a column of integers with gaps, which pandas makes floats of, as integers; any other as it is."""
    if column.dtype != np.dtype("float64") or not column.isna().any():
        return column
    present = column.dropna()
    # Beyond, a float is no certain integer.
    is_whole = bool((present.abs() < 2**53).all() and (present % 1 == 0).all())
    return column.astype("Int64") if is_whole else column


def _compare(clause: TypedClause, sign: Operator, column: Any) -> Any:
    """Return the comparison of a whole column; None for a column of another type than that of the kind."""
    present = column.notna().to_numpy()
    values = _read_values(clause.type.kind, column[present])
    if values is None:
        return None
    found = np.zeros(len(column), dtype=bool)
    if clause.type.kind is Kind.TEXT and sign is Operator.CONTAINS:
        wanted = fold(str(clause.value))
        found[present] = [wanted in fold(text) for text in values]
        return found
    bounds = [_adapt(value, values.dtype) for value in list_bound_values((clause.type.kind, sign), clause.value)]
    if len(bounds) == 2:
        found[present] = (bounds[0] <= values) & (values <= bounds[1])
    else:
        found[present] = IN_ORDER[sign](bounds[0], values)
    return found


def _adapt(value: Any, dtype: Any) -> Any:
    if dtype.kind != "M":
        return value
    return np.datetime64(value.replace(tzinfo=None) if hasattr(value, "tzinfo") else value, "us")


def _read_values(kind: Kind, present: Any) -> Any:
    """Return the present values as an array that NumPy compares as the predicate does, or None."""
    if kind is Kind.FLAG:
        return present.to_numpy(dtype=bool) if pd.api.types.is_bool_dtype(present.dtype) else None
    if kind in (Kind.INSTANT, Kind.DAY) and pd.api.types.is_datetime64_any_dtype(present.dtype):
        is_zoned = isinstance(present.dtype, pd.DatetimeTZDtype)
        moments = (present.dt.tz_convert(None) if is_zoned else present).to_numpy().astype("datetime64[us]")
        is_day = not is_zoned and bool((moments == moments.astype("datetime64[D]")).all())
        return moments if kind is Kind.INSTANT or is_day else None
    inferred = pd.api.types.infer_dtype(present, skipna=False)
    is_own = {Kind.TEXT: "string", Kind.DAY: "date"}.get(kind) == inferred
    return present.to_numpy(dtype=object) if is_own else None


__all__ = ["pandas_mask"]
