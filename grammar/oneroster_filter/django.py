"""Compiles a checked expression to a Q object of Django."""

import json
import re
from datetime import date, datetime
from typing import Any

from django.conf import settings
from django.db import NotSupportedError
from django.db.models import BooleanField, DateField, DateTimeField, Exists, F, Func, Q, TextField, Value

from oneroster_filter.check import TypedClause, TypedExpr
from oneroster_filter.nodes import Operator, fold_tree, require_clauses
from oneroster_filter.sources import compile_clause
from oneroster_filter.sql_templates import COMPARISONS, DATABASES, Key, choose_collation, list_bound_values, quote_name
from oneroster_filter.typing import DjangoColumns


def django_q(typed: TypedExpr, columns: DjangoColumns, *, collation: str | None = None) -> Q:
    """Compile a checked expression to a condition for `filter`.

    Args:
        typed: What `check` returned.
        columns: A mapping or a function from the dotted name of a field to its source: the name of a field of the model
            (`family_name`, `school__name`) or an expression. A list is an `ArrayField` on PostgreSQL, and a
            `JSONField` elsewhere. The source of a `many` field is a `Through`, whose `wrap` gets a Q and returns an
            `Exists`.
        collation: The PostgreSQL collation by which `~` ignores case; see `sqlalchemy_where`.

    Returns:
        The condition.

    Raises:
        TypeError: The expression is not checked.
        ColumnError: A field has no source, a `many` field has no `Through`, or another field has one.
    """

    def compare(clause: TypedClause, operator: Operator, source: Any) -> Q:
        key = (clause.type.kind, operator)
        expression = F(source) if isinstance(source, str) else source
        return Q(Comparison(key, expression, *map(_bind, list_bound_values(key, clause.value)), collation=collation))

    def compile_one(clause: TypedClause) -> Q:
        condition: Q | Exists = compile_clause(clause, columns, compare, lambda condition: ~Q(condition))
        return condition if isinstance(condition, Q) else Q(condition)

    require_clauses(typed, TypedClause, "check")
    return fold_tree(typed, compile_one, lambda every: Q(*every), lambda some: Q(*some, _connector=Q.OR))


class TextList(Func):  # type: ignore[misc]
    """A list of texts as one bound value: an array on PostgreSQL, the text of a JSON array elsewhere."""

    def __init__(self, items: tuple[str, ...]) -> None:
        super().__init__(output_field=TextField())
        self.items = items

    def as_sql(self, compiler: Any, connection: Any, **options: Any) -> tuple[str, list[Any]]:
        """Return the placeholder and the value for the driver."""
        items = list(self.items)
        return "%s", [items if connection.vendor == "postgresql" else json.dumps(items)]


class Comparison(Func):  # type: ignore[misc]
    """A comparison of kind and operator. Its operands are the source of the field and the bound values."""

    def __init__(self, key: Key, *operands: Any, collation: str | None) -> None:
        super().__init__(*operands, output_field=BooleanField())
        self.key = key
        self.collation = collation

    def as_sql(self, compiler: Any, connection: Any, **options: Any) -> tuple[str, list[Any]]:
        """Return the SQL and the values, in the order of their placeholders."""
        is_mariadb = getattr(connection, "mysql_is_mariadb", False)
        database = "mariadb" if is_mariadb else connection.vendor
        if database not in DATABASES:
            raise NotSupportedError(f"a filter has no SQL for {database}: the databases are {', '.join(DATABASES)}")
        template = COMPARISONS[database][self.key]
        operands = [compiler.compile(operand) for operand in self.get_source_expressions()]
        # The collation is the operand after the one value of `~` on text; other templates do not use it.
        collation = self.collation or choose_collation(_find_version(connection))
        texts = [*(text for text, _ in operands), quote_name(collation).replace("%", "%%")]
        places = [int(place) for place in re.findall(r"\{([0-9])\}", template)]
        values = [value for place in places if place < len(operands) for value in operands[place][1]]
        return template.format(*texts), values


def _find_version(connection: Any) -> int | None:
    return connection.pg_version // 10_000 if connection.vendor == "postgresql" else None


def _bind(value: Any) -> Any:
    if isinstance(value, tuple):
        return TextList(value)
    if isinstance(value, datetime):
        moment = value if settings.USE_TZ else value.replace(tzinfo=None)
        return Value(moment, output_field=DateTimeField())
    if isinstance(value, bool):
        return Value(value, output_field=BooleanField())
    return Value(value, output_field=DateField() if isinstance(value, date) else TextField())


__all__ = ["django_q"]
