"""The temporary tables of a load, what it sets aside, and its progress."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Protocol, TypeVar, cast

import sqlalchemy as sa
from sqlalchemy.schema import CreateTable

from roster_service.db.tables import CText
from sync_scripts.formats.model import LINE, StagedFile

# One Table object per name and columns, so that SQLAlchemy's statement cache also works across runs, and the statement
# that creates it.
_TABLES: dict[tuple[object, ...], tuple[sa.Table, str]] = {}
# To spell a type takes longer than to look for it.
_spell = functools.lru_cache(maxsize=512)(repr)


def create_temporary(
    connection: sa.Connection, name: str, columns: Iterable[sa.ColumnElement[Any]], *, key: str | None = None
) -> sa.Table:
    """Creates a temporary table whose columns have the names and types of the given ones. `key`: the name of its
    primary key."""
    columns = tuple(columns)
    look = (name, key, *((column.name, _spell(column.type)) for column in columns))
    if look not in _TABLES:
        own = (sa.Column(column.name, column.type, primary_key=column.name == key) for column in columns)
        made = sa.Table(name, sa.MetaData(), *own, prefixes=["TEMPORARY"], postgresql_on_commit="DROP")
        # Another thread may have made it meanwhile.
        _TABLES.setdefault(look, (made, str(CreateTable(made).compile(dialect=connection.dialect))))
    table, statement = _TABLES[look]
    connection.exec_driver_sql(statement)
    return table


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
    table = create_ids(connection, name)
    connection.execute(table.insert().from_select(["sourced_id"], ids))
    quote = connection.dialect.identifier_preparer.quote_identifier
    connection.exec_driver_sql(
        f"CREATE UNIQUE INDEX ON pg_temp.{quote(name)} (sourced_id); ANALYZE pg_temp.{quote(name)}"
    )
    return table


def count_lines(connection: sa.Connection, rows: sa.FromClause) -> tuple[int, int | None]:
    """The number of rows, and the first of their lines; None for no rows. `rows`: with the column `LINE`."""
    counted = sa.select(sa.func.count(), sa.func.min(rows.c[LINE])).select_from(rows)
    count, first = connection.execute(counted).one()
    return count, first


def create_ids(connection: sa.Connection, name: str) -> sa.Table:
    """A temporary table for ids of records."""
    return create_temporary(connection, name, [sa.column("sourced_id", CText)])


Item = TypeVar("Item")


class Follow(Protocol):
    """A function that returns the items of a collection one by one, and notifies an observer after each."""

    def __call__(self, items: Collection[Item], /) -> Iterator[Item]: ...


def quarantine_rows(
    connection: sa.Connection, file: StagedFile, failing: sa.Select[Any], quarantine: StagedFile | None
) -> tuple[StagedFile, int]:
    """Copies the rows of the lines that `failing` selects into the quarantine (None: a new one). The rows stay in their
    file until `delete_quarantined`, because the checks of other files still read them.

    Returns the quarantine, and how many rows it gained.
    """
    columns = file.columns
    if quarantine is None:
        quarantine = make_quarantine(connection, file)
    rows = sa.select(*columns).where(file.line.in_(failing))
    rejected = cast(sa.Table, quarantine.table)
    added = connection.execute(sa.insert(rejected).from_select([column.name for column in columns], rows)).rowcount
    analyze_temporary(connection, rejected)
    return quarantine, added


def make_quarantine(connection: sa.Connection, file: StagedFile) -> StagedFile:
    """An empty quarantine for a file."""
    made = create_temporary(connection, f"rejected_{cast(sa.Table, file.table).name}", file.columns)
    return StagedFile(file.file, made, file.metadata_keys)


def delete_quarantined(connection: sa.Connection, file: StagedFile, quarantine: StagedFile) -> None:
    """Deletes the quarantined rows from their file."""
    connection.execute(sa.delete(cast(sa.Table, file.table)).where(file.line.in_(sa.select(quarantine.line))))
