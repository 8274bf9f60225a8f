"""The names for annotations: what functions of the library take and return.

It imports no other package, so the names of SQLAlchemy and Django are there without these.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from oneroster_filter.check import TypedClause, TypedExpr
from oneroster_filter.declared_types import TypesSource
from oneroster_filter.nodes import Expansion, Expr, Plain, Position
from oneroster_filter.predicate import Record, Test
from oneroster_filter.sources import Through
from oneroster_filter.sql_text import SqlText, TextColumns
from oneroster_filter.values import Span, Value

if TYPE_CHECKING:
    import sqlalchemy as sa
    from django.db.models.expressions import Combinable

Condition: TypeAlias = "sa.ColumnElement[bool]"
"""A condition for WHERE, of SQLAlchemy."""

Source: TypeAlias = "sa.ColumnExpressionArgument[Any] | Through"
"""The source of a field: a column, an ORM attribute or an expression; for a field with many values, a `Through`."""

Columns: TypeAlias = "Mapping[str, Source] | Callable[[str], Source]"
"""The sources of all fields, by the dotted name of the field."""

DjangoSource: TypeAlias = "str | Combinable | Through"
"""The source of a field: the name of a field of the model, an expression, or a `Through` for many values."""

DjangoColumns: TypeAlias = "Mapping[str, DjangoSource] | Callable[[str], DjangoSource]"
"""The sources of all fields, by the dotted name of the field."""

__all__ = [
    "Columns",
    "Condition",
    "DjangoColumns",
    "DjangoSource",
    "Expansion",
    "Expr",
    "Plain",
    "Position",
    "Record",
    "Source",
    "Span",
    "SqlText",
    "Test",
    "TextColumns",
    "TypedClause",
    "TypedExpr",
    "TypesSource",
    "Value",
]
