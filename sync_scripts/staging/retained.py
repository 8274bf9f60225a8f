"""What of the stored roster stands beside an export: the records that a run leaves as they are.

A bulk file says everything about its records, but for the rows of it that are refused: their records stand with
their last good state. A delta file says something about the records that it names; all others stand. What stands can
be referred to, and is never marked as gone.

The same is true of roles and profiles, each a row of a file of its own: those that stand are the roles and profiles of
users that are active after the run. A user that is gone keeps those it had; what the export takes back of them after
that is only marked, and does not come back with the user.

The dates of the rows themselves are not read, neither in bulk nor in deltas: exports are applied in the order in which
they are given, and every change bears the stamp of its run. A consumer asks for what changed here since it last
asked; a date of the source, older than that, would hide the change from it for good.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from sqlalchemy import Column, ColumnElement, FromClause, Table, Text, and_, exists, or_, select, union_all

from roster_service.db import tables
from sync_scripts.formats.model import CsvFile, Staged, StagedFile, Subject

ACTIVE, TO_BE_DELETED = "active", "tobedeleted"


# Per roster table of whose file only the new lines were staged, the temporary table of the ids of active records whose
# lines are gone.
Absent = Mapping[Table, Table]
NOTHING_LEFT_OUT: Absent = MappingProxyType({})


def is_active(stored: FromClause, feed_id: int) -> ColumnElement[bool]:
    """The condition that a row of `stored`, a roster table or an alias of it, is an active record of the feed."""
    return and_(stored.c.feed_id == feed_id, stored.c.status == ACTIVE)


@dataclass(frozen=True)
class Retention:
    """What decides which records of the feed stand: the staged files, which of them are deltas, the rows that were
    refused and taken out of them, by the name of their file, and the records whose lines are gone."""

    feed_id: int
    staged: Staged
    deltas: frozenset[str]
    rejected: Mapping[str, StagedFile]
    absent: Absent
    # For the ids of records that the rows of files with a `subject` describe.
    feed_name: str = ""

    def is_retained(self, table: Table, stored: FromClause) -> ColumnElement[bool] | None:
        """The condition that a row of `stored`, the table or an alias of it, stands; None: none does."""
        names = [file.file.name for file in self.staged.values() if file.file.table is table]
        own = is_active(stored, self.feed_id)
        if not names:
            # Of a file that is absent, nothing is said.
            return own
        if any(name in self.deltas for name in names):
            return and_(own, *(~_is_named(stored.c.sourced_id, self.staged[name]) for name in names))
        rejected = [_is_named(stored.c.sourced_id, self.rejected[name]) for name in names if name in self.rejected]
        return and_(own, or_(*rejected)) if rejected else None

    def is_active_after(self, table: Table, stored: FromClause) -> ColumnElement[bool] | None:
        """The condition that a row of `stored` is active after the run though no staged row says so: it stands, or its
        line was not staged because it is the same as before. None: no such row."""
        is_retained = self.is_retained(table, stored)
        if table not in self.absent:
            return is_retained
        gone = exists().where(self.absent[table].c.sourced_id == stored.c.sourced_id)
        same = and_(is_active(stored, self.feed_id), ~gone)
        return same if is_retained is None else or_(same, is_retained)

    def is_own_part(self, file: CsvFile, stored: FromClause) -> ColumnElement[bool]:
        """The condition that a part in `stored`, the table that rows of `file` are kept in or an alias of it, is a row
        of the feed: also one of a user that is gone, unless it was taken back since."""
        users, owner = tables.users.alias(), _stored_column(file.owner.column, stored)
        of_feed = exists().where(users.c.sourced_id == owner, users.c.feed_id == self.feed_id)
        exported = [stored.c.origin == "export"] if "origin" in stored.c else []
        return and_(of_feed, stored.c.taken_back.is_not(True), *exported)

    def is_retained_part(self, file: CsvFile, stored: FromClause) -> ColumnElement[bool] | None:
        """The condition that such a part stands; None: none does.

        In bulk, that is one whose row is refused. Where a user has some without ids, and a row of it is refused, all of
        them stand together: one of those may be that row.
        """
        key, owner = (
            _stored_column(file.find_cell("sourcedId").column, stored),
            _stored_column(file.owner.column, stored),
        )
        if file.name in self.deltas:
            return and_(self.is_own_part(file, stored), ~_is_named(key, self.staged[file.name]))
        if file.name not in self.rejected:
            return None
        rejected = self.rejected[file.name]
        twin = stored.alias()
        nameless = exists().where(
            _stored_column(file.owner.column, twin) == owner,
            _stored_column(file.find_cell("sourcedId").column, twin).is_(None),
            self.is_own_part(file, twin),
        )
        of_user = and_(owner.in_(select(rejected[file.owner.header])), nameless)
        return and_(self.is_own_part(file, stored), or_(_is_named(key, rejected), of_user))

    def find_retained(self, file: CsvFile) -> StagedFile | None:
        """What is stored of a file and remains, to look something up in: the columns that are kept as the texts that
        they are, and no others. None: nothing does."""
        if file.subject is not None:
            return self._find_described(file, file.subject)
        table = file.kept_in if file.table is None else file.table
        if table is None:
            return None
        stored = table.alias()
        condition = self.is_retained_part(file, stored) if file.table is None else self.is_active_after(table, stored)
        if condition is None:
            return None
        columns = (
            _stored_column(cell.column, stored).label(cell.header)
            for cell in file.cells
            if cell.column is not None and isinstance(cell.column.type, Text)
        )
        return StagedFile(file, select(*columns).where(condition).subquery(), ())

    def _find_described(self, file: CsvFile, subject: Subject) -> StagedFile | None:
        """The refused rows of a file that others are derived from, where the record that a row describes stands."""
        rejected = self.rejected.get(file.name)
        if rejected is None or subject.identify is None:
            return None
        stored = subject.table.alias()
        described = stored.c.sourced_id == subject.identify(self.feed_name, rejected["sourcedId"])
        rows = select(*rejected.columns).where(described, is_active(stored, self.feed_id))
        return StagedFile(file, rows.subquery(), ())

    def include_retained(self, file: StagedFile) -> StagedFile:
        """The live rows of a file and what stands beside them, in the columns of `find_retained`."""
        retained = self.find_retained(file.file)
        if retained is None:
            return file
        headers = [column.name for column in retained.table.c]
        rows = union_all(
            select(*(file[header].label(header) for header in headers)).where(file.live),
            select(*(retained[header].label(header) for header in headers)),
        )
        return StagedFile(file.file, rows.subquery(), ())


def _stored_column(column: Column[Any] | None, stored: FromClause) -> ColumnElement[Any]:
    """The column in the table that it is kept in, or an alias of this."""
    if column is None:
        raise TypeError("the cell is not kept")
    return stored.c[column.name]


def _is_named(identifier: ColumnElement[Any], file: StagedFile) -> ColumnElement[bool]:
    named = file.alias()
    return exists().where(named["sourcedId"] == identifier)
