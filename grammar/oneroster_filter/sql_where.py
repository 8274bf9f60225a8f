"""Compiles a checked expression to a SQL condition, as a SQLAlchemy expression.

Every value is bound, and expressions of the same shape give the same SQL. For an absent value a comparison is NULL,
which WHERE treats as false; `!=` is compiled so that it is true.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache
from typing import Any, TypeAlias

import sqlalchemy as sa
from sqlalchemy.types import TypeEngine

from oneroster_filter.check import TypedClause, TypedExpr
from oneroster_filter.errors import ColumnError
from oneroster_filter.field_types import Kind
from oneroster_filter.nodes import Operator, fold_tree
from oneroster_filter.sql_constructs import Exact, HasAll, HasAny, Ordered, TextList, folded
from oneroster_filter.values import Span

ICU_ROOT = "und-x-icu"
"""A collation of every PostgreSQL that is built with ICU, as in all distributions."""

ESCAPE = "/"
"""The escape character of LIKE patterns. The default, a backslash, does not work on every database."""

Condition: TypeAlias = sa.ColumnElement[bool]


@dataclass(frozen=True)
class Through:
    """The source of a `many` field, whose values are in other rows.

    Args:
        element: The expression of one value: `role.c.role`.
        wrap: Converts a condition on one value into a condition on the record, by an EXISTS around it.
    """

    element: sa.ColumnExpressionArgument[Any]
    wrap: Callable[[Condition], Condition]


class FilterValue(sa.BindParameter[Any]):
    """A bound value of a filter. The class tells it from other bound values, such as constants of the columns."""

    inherit_cache = True


Source: TypeAlias = "sa.ColumnExpressionArgument[Any] | Through"
Columns: TypeAlias = "Mapping[str, Source] | Callable[[str], Source]"
Comparison: TypeAlias = Callable[[Any, Any], Condition]
Comparisons: TypeAlias = Mapping[tuple[Kind, Operator], Comparison]


def sqlalchemy_where(
    typed: TypedExpr, columns: Columns, *, collation: str = ICU_ROOT, contains: Comparison | None = None
) -> Condition:
    """Compile a checked expression to a condition for WHERE.

    Args:
        typed: What `check` returned.
        columns: A mapping or a function from the dotted name of a field to its source: a Core column, an ORM attribute,
            or any expression of the kind's type (text, boolean, timestamp, date; for a list, an array of text on
            PostgreSQL and JSON text elsewhere). A timestamp without a time zone must be in UTC. The source of a `many`
            field is a `Through`.
        collation: The PostgreSQL collation by which `~` ignores case. It must be deterministic, and its `lower` must
            know Unicode. `pg_c_utf8`, from PostgreSQL 17 on, is the fastest. Other databases ignore it.
        contains: Makes the condition of `~` on a text, for a database with a better way than LIKE. It gets the
            expression of the text and the bound, unfolded value, and must fold both as `fold` does.

    Returns:
        The condition.

    Raises:
        ColumnError: A field has no column, a `many` field has no `Through`, or another field has one.
    """
    find = columns.__getitem__ if isinstance(columns, Mapping) else columns
    comparisons = _make_comparisons(collation)
    if contains is not None:
        own: Comparison = lambda source, value: contains(source, _bind_text(value))  # noqa: E731  (as the others are)
        comparisons = {**comparisons, (Kind.TEXT, Operator.CONTAINS): own}

    def compile_clause(clause: TypedClause) -> Condition:
        try:
            source = find(clause.field)
        except KeyError as error:
            raise ColumnError(clause.field, "there is no column for this field") from error
        if isinstance(source, Through) is not clause.type.many:
            raise ColumnError(
                clause.field, "a field with many values needs a Through, and other fields must not have one"
            )
        if isinstance(source, Through):
            return _compile_through(clause, source, comparisons)
        return comparisons[clause.type.kind, clause.operator](source, clause.value)

    return fold_tree(
        typed, compile_clause, lambda conditions: sa.and_(*conditions), lambda conditions: sa.or_(*conditions)
    )


def _compile_through(clause: TypedClause, source: Through, comparisons: Comparisons) -> Condition:
    """Compile a clause on a `many` field: any value satisfies the comparison, or, for `!=`, no value is equal."""
    if clause.operator is Operator.NOT_EQUAL:
        return sa.not_(source.wrap(comparisons[clause.type.kind, Operator.EQUAL](source.element, clause.value)))
    return source.wrap(comparisons[clause.type.kind, clause.operator](source.element, clause.value))


def _bind(value: object, type_: TypeEngine[Any]) -> FilterValue:
    return FilterValue(None, value, type_=type_, unique=True)


def _bind_text(value: str) -> sa.BindParameter[Any]:
    return _bind(value, sa.Text())


def _bind_day(value: date) -> sa.BindParameter[Any]:
    return _bind(value, sa.Date())


def _bind_instant(source: Any, value: datetime) -> sa.BindParameter[Any]:
    """Bind an instant in the column's type. Otherwise PostgreSQL would convert it by the session's time zone."""
    zoned = getattr(source.type, "timezone", True)
    return _bind(value if zoned else value.replace(tzinfo=None), sa.DateTime(timezone=zoned))


def _compare_within(source: Any, span: Span) -> Condition:
    condition: Condition = source.between(_bind_instant(source, span.first), _bind_instant(source, span.last))
    return condition


def _compare_has_all(source: Any, items: tuple[str, ...]) -> Condition:
    return HasAll(source, _bind(items, TextList()))


def _negate(comparison: Comparison) -> Comparison:
    return lambda source, value: sa.not_(sa.func.coalesce(comparison(source, value), sa.false()))


def _make_pattern(value: str) -> str:
    """Return the LIKE pattern for texts that contain the value, with the wildcards of the value escaped."""
    return "%" + re.sub(f"[%_{ESCAPE}]", rf"{ESCAPE}\g<0>", value) + "%"


@lru_cache(maxsize=64)
def _make_comparisons(collation: str) -> Comparisons:
    """Return the comparison of each kind and operator. For `!=`, planners estimate IS DISTINCT FROM better than NOT."""
    return {
        (Kind.TEXT, Operator.EQUAL): lambda source, value: Exact(source) == _bind_text(value),
        (Kind.TEXT, Operator.NOT_EQUAL): lambda source, value: Exact(source).is_distinct_from(_bind_text(value)),
        (Kind.TEXT, Operator.GREATER): lambda source, value: Ordered(source) > _bind_text(value),
        (Kind.TEXT, Operator.GREATER_OR_EQUAL): lambda source, value: Ordered(source) >= _bind_text(value),
        (Kind.TEXT, Operator.LESS): lambda source, value: Ordered(source) < _bind_text(value),
        (Kind.TEXT, Operator.LESS_OR_EQUAL): lambda source, value: Ordered(source) <= _bind_text(value),
        (Kind.TEXT, Operator.CONTAINS): lambda source, value: folded(source, collation).like(
            folded(_bind_text(_make_pattern(value)), collation), escape=ESCAPE
        ),
        (Kind.FLAG, Operator.EQUAL): lambda source, value: source == _bind(value, sa.Boolean()),
        (Kind.FLAG, Operator.NOT_EQUAL): lambda source, value: source.is_distinct_from(_bind(value, sa.Boolean())),
        (Kind.INSTANT, Operator.EQUAL): _compare_within,
        (Kind.INSTANT, Operator.NOT_EQUAL): _negate(_compare_within),
        (Kind.INSTANT, Operator.GREATER): lambda source, span: source > _bind_instant(source, span.last),
        (Kind.INSTANT, Operator.GREATER_OR_EQUAL): lambda source, span: source >= _bind_instant(source, span.first),
        (Kind.INSTANT, Operator.LESS): lambda source, span: source < _bind_instant(source, span.first),
        (Kind.INSTANT, Operator.LESS_OR_EQUAL): lambda source, span: source <= _bind_instant(source, span.last),
        (Kind.DAY, Operator.EQUAL): lambda source, value: source == _bind_day(value),
        (Kind.DAY, Operator.NOT_EQUAL): lambda source, value: source.is_distinct_from(_bind_day(value)),
        (Kind.DAY, Operator.GREATER): lambda source, value: source > _bind_day(value),
        (Kind.DAY, Operator.GREATER_OR_EQUAL): lambda source, value: source >= _bind_day(value),
        (Kind.DAY, Operator.LESS): lambda source, value: source < _bind_day(value),
        (Kind.DAY, Operator.LESS_OR_EQUAL): lambda source, value: source <= _bind_day(value),
        (Kind.TEXTS, Operator.EQUAL): _compare_has_all,
        (Kind.TEXTS, Operator.NOT_EQUAL): _negate(_compare_has_all),
        (Kind.TEXTS, Operator.CONTAINS): lambda source, items: HasAny(source, _bind(items, TextList())),
    }
