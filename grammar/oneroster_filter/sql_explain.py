"""The SQL of a filter, for reading: with a column named after each field, and a table after each list."""

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine.url import URL
from sqlalchemy.types import TypeEngine

from oneroster_filter.check import TypedClause, TypedExpr
from oneroster_filter.field_types import Kind
from oneroster_filter.nodes import clauses
from oneroster_filter.sql_where import Source, Through, sqlalchemy_where

SQL_TYPES: dict[Kind, TypeEngine[Any]] = {
    Kind.TEXT: sa.Text(),
    Kind.FLAG: sa.Boolean(),
    Kind.INSTANT: sa.DateTime(timezone=True),
    Kind.DAY: sa.Date(),
    Kind.TEXTS: sa.Text(),
}


def sql_lines(typed: TypedExpr, dialect: str) -> Iterator[str]:
    """Yield the lines that show a checked expression as SQL: the condition, then what is bound to it.

    Args:
        typed: What `check` returned.
        dialect: The name of a SQLAlchemy dialect.
    """
    sources = {clause.field: _source(clause) for clause in clauses(typed)}
    where = sqlalchemy_where(typed, sources)
    compiled = where.compile(dialect=URL.create(dialect).get_dialect()())
    yield from (f"  {line.rstrip()}" for line in str(compiled).splitlines())
    yield from (f"  :{name} = {value!r}" for name, value in compiled.params.items())


def _source(clause: TypedClause) -> Source:
    column: sa.ColumnClause[Any] = sa.column(clause.field, SQL_TYPES[clause.type.kind])
    if not clause.type.many:
        return column
    table, _, name = clause.field.rpartition(".")
    rows = sa.table(table or clause.field, sa.column(name, column.type))
    return Through(rows.c[name], lambda condition: sa.exists().select_from(rows).where(condition))
