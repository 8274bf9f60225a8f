"""The planner statistics of the tables that a run has written: the old ones are far off right after a load."""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa

from sync_scripts.applying.changes import Difference
from sync_scripts.formats.model import Format

# A run analyzes a table itself, without waiting for autovacuum, if it wrote at least this part of all its records.
ANALYZED_PERCENT = 5
# The records of each table, of all feeds, as the last ANALYZE or autovacuum has counted them; -1: none of them has.
_SIZES = sa.text(
    "SELECT relname, CAST(reltuples AS bigint) FROM pg_class "
    "WHERE relnamespace = CAST(current_schema() AS regnamespace) AND relkind = 'r'"
)


def list_outdated(connection: sa.Connection, differences: Iterable[Difference], form: Format) -> list[sa.Table]:
    """The tables of which the differences write so much that their statistics are out of date, with their tables of
    parts."""
    sizes: dict[str, int] = {row.relname: row.reltuples for row in connection.execute(_SIZES)}
    written = [
        difference.table
        for difference in differences
        if difference.counts.any and _is_outdated(difference, max(sizes[difference.table.name], 1))
    ]
    return [*written, *(part.table for part in form.parts if part.owner in written)]


def _is_outdated(difference: Difference, size: int) -> bool:
    return (difference.counts.written + difference.counts.tombstoned) * 100 >= ANALYZED_PERCENT * size


def analyze(connection: sa.Connection, tables: Iterable[sa.Table]) -> None:
    """Makes new statistics of these tables."""
    for table in tables:
        # SKIP_LOCKED: a load of another feed that has analyzed the table keeps its lock until it ends.
        connection.exec_driver_sql(
            f"ANALYZE (SKIP_LOCKED) {connection.dialect.identifier_preparer.format_table(table)}"
        )
