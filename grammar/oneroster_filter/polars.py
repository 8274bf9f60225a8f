"""The mask of a polars frame: an expression that is true for the rows that satisfy a checked expression."""

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from oneroster_filter.check import TypedClause, TypedExpr
from oneroster_filter.errors import ColumnError
from oneroster_filter.field_types import Kind
from oneroster_filter.folding import DOTTED_I, FINAL_SIGMA, PLAIN_I, SIGMA, fold
from oneroster_filter.frame_columns import find_column, test_values
from oneroster_filter.nodes import Operator, fold_tree, require_clauses
from oneroster_filter.predicate import IN_ORDER
from oneroster_filter.sql_templates import list_bound_values


def polars_mask(typed: TypedExpr, frame: pl.DataFrame | pl.LazyFrame) -> pl.Expr:
    """Find the rows of a polars frame that satisfy a checked expression: `frame.filter(polars_mask(typed, frame))`.

    Columns of texts, Booleans, datetimes, dates, lists and structs are compared by polars. For other columns, such as
    datetimes that are texts, the mask asks the predicate for each value.

    Args:
        typed: What `check` returned.
        frame: A frame with a column for each field of the expression. A dotted field has a column with exactly its
            name, or its first name is a column of structs or of lists of structs. Null and NaN are absent values.

    Returns:
        An expression for the rows of this frame, without nulls.

    Raises:
        ColumnError: A field has no column, or the column of a lazy frame has another type.
        RecordError: A value is not of its field's kind.
        TypeError: The expression is not checked.
    """
    require_clauses(typed, TypedClause, "check")
    schema = frame.collect_schema()
    names = list(schema)

    def compile_clause(clause: TypedClause) -> pl.Expr:
        name, path = find_column(clause, names)
        is_negated = clause.operator is Operator.NOT_EQUAL
        sign = Operator.EQUAL if is_negated else clause.operator
        found: pl.Expr | None = _compare(clause, sign, pl.col(name), schema[name], path)
        if found is not None:
            return ~found if is_negated else found
        if isinstance(frame, pl.LazyFrame):
            raise ColumnError(clause.field, f"a lazy frame needs a column of its kind, not of {schema[name]}")
        return pl.lit(pl.Series(test_values(clause, name, frame[name].to_list()), dtype=pl.Boolean))

    mask: pl.Expr = fold_tree(typed, compile_clause, pl.all_horizontal, pl.any_horizontal)
    return mask


def _compare(clause: TypedClause, sign: Operator, source: pl.Expr, type_: Any, path: tuple[str, ...]) -> Any:
    """Return the comparison of the values at the end of a path; None where the predicate must compare them."""
    if isinstance(type_, pl.Null):
        return source.is_not_null()
    is_value = clause.type.kind is Kind.TEXTS and not path and not _is_list_of_lists(type_)
    if clause.type.many and isinstance(type_, pl.List) and not is_value:
        inner = _compare(clause, sign, pl.element(), type_.inner, path)
        return None if inner is None else source.list.eval(inner).list.any().fill_null(value=False)
    if path:
        if not isinstance(type_, pl.Struct):
            return None
        inner_type = type_.to_schema().get(path[0], pl.Null())
        below = source if isinstance(inner_type, pl.Null) else source.struct.field(path[0])
        # The values of an unknown field are absent.
        unknown = source.is_null() & source.is_not_null()
        return unknown if below is source else _compare(clause, sign, below, inner_type, path[1:])
    compared = _compare_values(clause, sign, source, type_)
    return None if compared is None else compared.fill_null(value=False)


def _is_list_of_lists(type_: Any) -> bool:
    return isinstance(type_, pl.List) and isinstance(type_.inner, pl.List)


def _compare_values(clause: TypedClause, sign: Operator, source: pl.Expr, type_: Any) -> Any:
    kind: Kind = clause.type.kind
    value: Any = clause.value
    if kind is Kind.TEXTS and type_ == pl.List(pl.String):
        has = [source.list.contains(item) for item in value]
        return pl.any_horizontal(has) if sign is Operator.CONTAINS else pl.all_horizontal(has)
    if kind is Kind.INSTANT and isinstance(type_, pl.Datetime):
        bounds = [(moment - _EPOCH) // timedelta(microseconds=1) for moment in list_bound_values((kind, sign), value)]
        moment = _MICROSECONDS[type_.time_unit](source.to_physical())
        return moment.is_between(*bounds) if len(bounds) == 2 else IN_ORDER[sign](pl.lit(bounds[0]), moment)
    if not isinstance(type_, _TYPES.get(kind, ())):
        return None
    if kind is Kind.TEXT and sign is Operator.CONTAINS:
        folded = source.str.replace_all(DOTTED_I, PLAIN_I, literal=True).str.to_lowercase()
        folded = folded.str.replace_all(FINAL_SIGMA, SIGMA, literal=True)
        return folded.str.contains(fold(str(value)), literal=True)
    return IN_ORDER[sign](pl.lit(value), source)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECONDS: dict[str, Any] = {
    "ns": lambda number: number // 1000,
    "us": lambda number: number,
    "ms": lambda number: number * 1000,
}
_TYPES: dict[Kind, Any] = {Kind.TEXT: pl.String, Kind.FLAG: pl.Boolean, Kind.DAY: pl.Date}


__all__ = ["polars_mask"]
