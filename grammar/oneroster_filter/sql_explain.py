"""The SQL of a filter for people to read, with a column for each field and a table for each list."""

from collections.abc import Callable, Iterator
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.mysql.base import MySQLDialect
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.dialects.sqlite.base import SQLiteDialect
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeEngine

from oneroster_filter.check import TypedClause, TypedExpr
from oneroster_filter.field_types import Kind
from oneroster_filter.nodes import clauses
from oneroster_filter.sources import Through
from oneroster_filter.sql_where import Source, sqlalchemy_where

DIALECTS: dict[str, Callable[..., Dialect]] = {"mysql": MySQLDialect, "postgresql": PGDialect, "sqlite": SQLiteDialect}
"""The dialects without a driver, so that the SQL has no driver-specific placeholders."""

SQL_TYPES: dict[Kind, TypeEngine[Any]] = {
    Kind.TEXT: sa.Text(),
    Kind.FLAG: sa.Boolean(),
    Kind.INSTANT: sa.DateTime(timezone=True),
    Kind.DAY: sa.Date(),
    Kind.TEXTS: sa.Text(),
}


def format_sql(typed: TypedExpr, dialect: str) -> Iterator[str]:
    """Yield the lines of a checked expression as SQL: the condition, then its bound values.

    Args:
        typed: What `check` returned.
        dialect: A name of `DIALECTS`.
    """
    sources = {clause.field: _make_source(clause) for clause in clauses(typed)}
    where = sqlalchemy_where(typed, sources)
    compiled = where.compile(dialect=DIALECTS[dialect](paramstyle="named"))
    yield from (f"  {line.rstrip()}" for line in str(compiled).splitlines())
    yield from (f"  :{name} = {value!r}" for name, value in compiled.params.items())


def _make_source(clause: TypedClause) -> Source:
    column: sa.ColumnClause[Any] = sa.column(clause.field, SQL_TYPES[clause.type.kind])
    if not clause.type.many:
        return column
    table, _, name = clause.field.rpartition(".")
    rows = sa.table(table or clause.field, sa.column(name, column.type))
    return Through(rows.c[name], lambda condition: sa.exists().select_from(rows).where(condition))
