"""The indexes of the roster, made once there are rows in it: see `roster_service.db.tables`."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, Table, func, inspect, literal, select
from sqlalchemy.schema import CreateIndex

# For sorting the rows of one index, until the transaction ends.
SORT_MEMORY = "256MB"


def make_missing_indexes(connection: Connection, tables: Iterable[Table]) -> None:
    """Makes the declared indexes that a table does not have. Readers go on reading meanwhile."""
    connection.execute(select(func.set_config(literal("maintenance_work_mem"), literal(SORT_MEMORY), True)))
    inspector = inspect(connection)
    for table in tables:
        there = {index["name"] for index in inspector.get_indexes(table.name)}
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            if index.name not in there:
                connection.execute(CreateIndex(index))
