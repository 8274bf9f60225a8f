"""The indexes of the roster, which the first load makes after its rows: see `roster_service.db.tables`."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, Table, func, inspect, literal, select
from sqlalchemy.schema import CreateIndex

from roster_service.db.tables import CText

# maintenance_work_mem for the sort of one index, until the transaction ends.
SORT_MEMORY = "256MB"


def has_key(connection: Connection, table: Table) -> bool:
    """Whether the index of the table's primary key exists. Only the first load runs without it."""
    return connection.scalar(select(func.to_regclass(literal(table.primary_key.name, CText)))) is not None


def make_missing_indexes(connection: Connection, tables: Iterable[Table]) -> None:
    """Makes the declared indexes that the tables lack. Readers can read the tables meanwhile."""
    connection.execute(select(func.set_config(literal("maintenance_work_mem"), literal(SORT_MEMORY), True)))
    inspector = inspect(connection)
    for table in tables:
        if not has_key(connection, table):
            _make_key(connection, table)
        existing = {index["name"] for index in inspector.get_indexes(table.name)}
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            if index.name not in existing:
                connection.execute(CreateIndex(index))


def _make_key(connection: Connection, table: Table) -> None:
    """Makes the primary key as a unique index: a constraint would lock readers out until the transaction ends."""
    quote = connection.dialect.identifier_preparer
    columns = ", ".join(map(quote.format_column, table.primary_key))
    connection.exec_driver_sql(
        f"CREATE UNIQUE INDEX {quote.quote(str(table.primary_key.name))} ON {quote.format_table(table)} ({columns})"
    )
