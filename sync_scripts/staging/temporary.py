"""Temporary tables: PostgreSQL drops them at the end of the transaction, and no other connection sees them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.schema import CreateTable

from roster_service.db.tables import CText

# One Table object per name and columns, so that SQLAlchemy's statement cache also works across runs.
_TABLES: dict[tuple[object, ...], sa.Table] = {}


def create_temporary(connection: sa.Connection, name: str, columns: Iterable[sa.Column[Any]]) -> sa.Table:
    """Creates a temporary table with these columns, which must not belong to a table yet."""
    columns = tuple(columns)
    look = (name, *((column.name, repr(column.type), column.primary_key) for column in columns))
    if look not in _TABLES:
        made = sa.Table(name, sa.MetaData(), *columns, prefixes=["TEMPORARY"], postgresql_on_commit="DROP")
        # Another thread may have made it meanwhile.
        _TABLES.setdefault(look, made)
    connection.execute(CreateTable(_TABLES[look]))
    return _TABLES[look]


def copy_columns(columns: Iterable[Any]) -> list[sa.Column[Any]]:
    """New columns with the names and types of the given ones, for another table."""
    return [sa.Column(column.name, column.type) for column in columns]


def insert_rows(connection: sa.Connection, table: sa.Table, rows: sa.Select[Any] | sa.CompoundSelect[Any]) -> None:
    """Inserts the rows that `rows` selects, each into the column of its label."""
    connection.execute(table.insert().from_select([column.name for column in rows.selected_columns], rows))


def analyze_temporary(connection: sa.Connection, table: sa.Table, *names: str) -> None:
    """Makes planner statistics for a table after it is filled. `names`: the columns to analyze; none: all columns."""
    quote = connection.dialect.identifier_preparer.quote_identifier
    columns = f" ({', '.join(map(quote, names))})" if names else ""
    connection.exec_driver_sql(f"ANALYZE pg_temp.{quote(table.name)}{columns}")


def store_ids(connection: sa.Connection, name: str, ids: sa.Select[Any] | sa.CompoundSelect[Any]) -> sa.Table:
    """A temporary table of the ids that `ids` selects, each once, with a unique index. With the index, the planner
    never reads the whole table for each id that it looks up, however wrong its estimate of their number is."""
    table = create_temporary(connection, name, [sa.Column("sourced_id", CText)])
    connection.execute(table.insert().from_select(["sourced_id"], ids))
    quote = connection.dialect.identifier_preparer.quote_identifier
    connection.exec_driver_sql(f"CREATE UNIQUE INDEX ON pg_temp.{quote(name)} (sourced_id)")
    analyze_temporary(connection, table)
    return table
