"""Compiles a checked expression to a SQL condition, as a SQLAlchemy expression.

Every value is bound, and expressions of the same shape give the same SQL.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import sqlalchemy as sa
from sqlalchemy.types import TypeEngine

from oneroster_filter.check import TypedClause, TypedExpr
from oneroster_filter.field_types import Kind
from oneroster_filter.nodes import MOST_OPERANDS, Operator, fold_tree, require_clauses
from oneroster_filter.sources import compile_clause
from oneroster_filter.sql_templates import list_bound_values
from oneroster_filter.sqlalchemy.constructs import COMPARISON_CLASSES, Group, TextList, convert_source, make_collation
from oneroster_filter.typing import Columns, Condition


class FilterValue(sa.BindParameter[Any]):
    """A bound value of a filter. The class tells it from other bound values, such as constants of the columns."""

    inherit_cache = True


Contains: TypeAlias = Callable[[Any, Any], Condition]
"""Makes the condition of `~` on a text from the source of the text and the bound value."""


def sqlalchemy_where(
    typed: TypedExpr, columns: Columns, *, collation: str | None = None, contains: Contains | None = None
) -> Condition:
    """Compile a checked expression to a condition for WHERE.

    Args:
        typed: What `check` returned.
        columns: A mapping or a function from the dotted name of a field to its source: a Core column, an ORM attribute,
            or any expression of the kind's type (text, boolean, timestamp, date; for a list, an array of text on
            PostgreSQL and JSON text elsewhere). A timestamp without a time zone must be in UTC. The source of a `many`
            field is a `Through`.
        collation: The PostgreSQL collation by which `~` ignores case. It must be deterministic, and its `lower` must
            know Unicode. Without it, `pg_c_utf8` from PostgreSQL 17 on, and before, or where no connection has told the
            version, `und-x-icu`. Other databases ignore it.
        contains: Makes the condition of `~` on a text, for a database with a better way than LIKE. It gets the
            expression of the text and the bound, unfolded value, and must fold both as `fold` does.

    Returns:
        The condition.

    Raises:
        TypeError: The expression is not checked.
        ColumnError: A field has no column, a `many` field has no `Through`, or another field has one.
    """

    def compare(clause: TypedClause, operator: Operator, source: Any) -> Condition:
        key = (clause.type.kind, operator)
        # An ORM attribute has its column inside.
        source = source if isinstance(source, sa.ColumnElement) else source.__clause_element__()
        is_contains = key == (Kind.TEXT, Operator.CONTAINS)
        if is_contains and contains is not None:
            return contains(source, _bind(clause.value, sa.Text()))
        type_ = _find_type(clause.type.kind, source)
        source = convert_source(clause.type.kind, source)
        operands: list[Any] = [_bind(_adapt(value, type_), type_) for value in list_bound_values(key, clause.value)]
        if is_contains:
            operands.append(make_collation(collation))
        return COMPARISON_CLASSES[key](source, *operands)

    def compile_one(clause: TypedClause) -> Condition:
        return compile_clause(clause, columns, compare, sa.not_)

    require_clauses(typed, TypedClause, "check")
    return fold_tree(
        typed,
        compile_one,
        lambda conditions: _group(sa.and_(*conditions), conditions),
        lambda conditions: _group(sa.or_(*conditions), conditions),
    )


def _group(combined: Condition, conditions: Sequence[Condition]) -> Condition:
    """Return a combination in parentheses if it is a group of a long one. No other: MySQL and SQLite find no index
    for what is in them."""
    return combined if len(conditions) < MOST_OPERANDS else Group(combined)


_TYPES: dict[Kind, TypeEngine[Any]] = {
    Kind.TEXT: sa.Text(),
    Kind.FLAG: sa.Boolean(),
    Kind.INSTANT: sa.DateTime(timezone=True),
    Kind.DAY: sa.Date(),
    Kind.TEXTS: TextList(),
}
_WITHOUT_ZONE = sa.DateTime()


def _find_type(kind: Kind, source: Any) -> TypeEngine[Any]:
    """Return the type of the bound values: without a zone if the column has none, because PostgreSQL would convert the
    column by the session's time zone."""
    return _TYPES[kind] if kind is not Kind.INSTANT or getattr(source.type, "timezone", True) else _WITHOUT_ZONE


def _adapt(value: Any, type_: TypeEngine[Any]) -> Any:
    return value.replace(tzinfo=None) if type_ is _WITHOUT_ZONE else value


def _bind(value: object, type_: TypeEngine[Any]) -> FilterValue:
    return FilterValue(None, value, type_=type_, unique=True)
