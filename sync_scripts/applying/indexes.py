"""The indexes of the roster, which the first load makes after its rows: see `roster_service.db.tables`."""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa
from sqlalchemy.schema import CreateIndex

from roster_service.db.tables import PART_TABLES, ROSTER_TABLES, CText, CTexts

# maintenance_work_mem for the sort of one index, until the transaction ends.
SORT_MEMORY = "256MB"
TABLES = (*ROSTER_TABLES, *PART_TABLES)
_NAMES = [str(name) for table in TABLES for name in (table.primary_key.name, *(index.name for index in table.indexes))]


def has_key(connection: sa.Connection, table: sa.Table) -> bool:
    """Whether the index of the table's primary key exists. Only the first load runs without it."""
    return connection.scalar(sa.select(sa.func.to_regclass(sa.literal(table.primary_key.name, CText)))) is not None


def lacks_indexes(connection: sa.Connection) -> bool:
    """Whether a table of the roster lacks an index. The load that makes it must be the only one."""
    name = sa.func.unnest(sa.literal(_NAMES, CTexts)).column_valued("name")
    return connection.scalar(sa.select(name).where(sa.func.to_regclass(name).is_(None)).limit(1)) is not None


def make_missing_indexes(connection: sa.Connection, tables: Iterable[sa.Table]) -> None:
    """Makes the declared indexes that the tables lack. Readers can read the tables meanwhile; no other run may write to
    them, because both would wait for each other."""
    if not lacks_indexes(connection):
        return
    connection.execute(sa.select(sa.func.set_config(sa.literal("maintenance_work_mem"), sa.literal(SORT_MEMORY), True)))
    inspector = sa.inspect(connection)
    for table in tables:
        if not has_key(connection, table):
            _make_key(connection, table)
        existing = {index["name"] for index in inspector.get_indexes(table.name)}
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            if index.name not in existing:
                connection.execute(CreateIndex(index))


def _make_key(connection: sa.Connection, table: sa.Table) -> None:
    """Makes the primary key as a unique index: a constraint would lock readers out until the transaction ends."""
    quote = connection.dialect.identifier_preparer
    columns = ", ".join(map(quote.format_column, table.primary_key))
    connection.exec_driver_sql(
        f"CREATE UNIQUE INDEX {quote.quote(str(table.primary_key.name))} ON {quote.format_table(table)} ({columns})"
    )
