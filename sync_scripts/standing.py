"""What of the stored roster stands beside an export: the records that a run leaves as they are.

A bulk file says everything about its records, but for the rows of it that are refused: their records stand with
their last good state. A delta file says something about the records that it names; all others stand. What stands can
be referred to, and is never marked as gone.

The dates of the rows themselves are not read, neither in bulk nor in deltas: exports are applied in the order in which
they are given, and every change bears the stamp of its run. A consumer asks for what changed here since it last
asked; a date of the source, older than that, would hide the change from it for good.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from sqlalchemy import ColumnElement, FromClause, Table, Text, and_, exists, or_, select, union_all

from sync_scripts.formats import Staged, StagedFile

ACTIVE, TO_BE_DELETED = "active", "tobedeleted"


# Per roster table whose file was sifted, the temporary table of the ids of active records that no row equals.
Absent = Mapping[Table, Table]
NOTHING_SIFTED: Absent = MappingProxyType({})


@dataclass(frozen=True)
class Ground:
    """What decides which records of the feed stand: the staged files, which of them are deltas, the rows that were
    refused and taken out of them, by the name of their file, and what sifting found."""

    feed_id: int
    staged: Staged
    deltas: frozenset[str]
    refused: Mapping[str, StagedFile]
    absent: Absent

    def stands(self, table: Table, stored: FromClause) -> ColumnElement[bool] | None:
        """The condition that a row of `stored`, the table or an alias of it, stands; None: none does."""
        names = [file.file.name for file in self.staged.values() if file.file.table is table]
        own = and_(stored.c.feed_id == self.feed_id, stored.c.status == ACTIVE)
        if any(name in self.deltas for name in names):
            return and_(own, *(~_is_named(stored, self.staged[name]) for name in names))
        refused = [_is_named(stored, self.refused[name]) for name in names if name in self.refused]
        return and_(own, or_(*refused)) if refused else None

    def remains(self, table: Table, stored: FromClause) -> ColumnElement[bool] | None:
        """The condition that a row of `stored` is active after the run though no staged row says so: it stands, or its
        line was not staged because it is the same as before. None: no such row."""
        stands = self.stands(table, stored)
        if not any(file.file.table is table and file.gone is not None for file in self.staged.values()):
            return stands
        own = and_(stored.c.feed_id == self.feed_id, stored.c.status == ACTIVE)
        same = and_(own, ~exists().where(self.absent[table].c.sourced_id == stored.c.sourced_id))
        return same if stands is None else or_(same, stands)

    def look_up(self, file: StagedFile) -> StagedFile:
        """The live rows of a file and the records that stand beside them, to look something up in: the columns that
        are kept as the texts that they are, and no others."""
        table = file.file.table
        stored = None if table is None else table.alias()
        if table is None or stored is None:
            return file
        condition = self.remains(table, stored)
        if condition is None:
            return file
        columns = {
            cell.header: cell.column
            for cell in file.file.cells
            if cell.column is not None and isinstance(cell.column.type, Text)
        }
        rows = union_all(
            select(*(file[header].label(header) for header in columns)).where(file.live),
            select(*(stored.c[column.name].label(header) for header, column in columns.items())).where(condition),
        )
        return StagedFile(file.file, rows.subquery(), ())


def _is_named(stored: FromClause, file: StagedFile) -> ColumnElement[bool]:
    named = file.alias()
    return exists().where(named["sourcedId"] == stored.c.sourced_id)
