"""The retained records: the stored records that a run leaves as they are.

A bulk file describes all its records. Only the records of its rejected rows are retained, with their last good state.
A delta file describes the records that it names; all others are retained. Rows may refer to retained records, and the
sync never marks them as deleted.

The same holds for roles and profiles, which are rows of a file of their own, if their user is active after the run. A
user marked as deleted keeps its roles and profiles. Where a later export no longer has one of them, the sync marks it
as taken back, and it does not return with the user.

The sync does not read the dateLastModified of rows, neither in bulk nor in deltas. It applies exports in the order in
which it gets them, and every change has the stamp of its run. A consumer asks for the changes since its last request;
an older date from the source would hide a change from it for good.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import sqlalchemy as sa

from roster_service.db import tables
from sync_scripts.formats.model import CsvFile, Format, Staged, StagedFile, name_once

ACTIVE, TO_BE_DELETED = "active", "tobedeleted"

# For each roster table whose file is staged with only its new lines: the temporary table of the ids of active records
# whose lines are gone.
Absent = Mapping[sa.Table, sa.Table]


def is_active(stored: sa.FromClause, feed_id: int) -> sa.ColumnElement[bool]:
    """The condition that a row of `stored`, a roster table or an alias of it, is an active record of the feed."""
    return sa.and_(stored.c.feed_id == feed_id, stored.c.status == ACTIVE)


@dataclass(frozen=True)
class Retention:
    """The facts that decide which records of the feed a run retains. `feed_name`: part of the ids of records that the
    rows of an export describe; `staged`: the staged files, and `deltas`: the names of the deltas among
    them; `rejected`: the quarantines by the name of their file; `absent`: the records whose lines are gone; `made`: the
    names of staged files that the export lacks, whose rows the run has made, and of which it retains all other records;
    `orphans`: by roster table, a temporary table of the ids of records that would be retained, but need a record that
    is gone after the run; `returning`: the same of tombstones that ended so, and whose needs are all there after it
    (see `checking/references.py`)."""

    feed_id: int
    feed_name: str
    staged: Staged
    deltas: frozenset[str] = frozenset()
    rejected: Mapping[str, StagedFile] = field(default_factory=dict)
    absent: Absent = field(default_factory=dict)
    made: frozenset[str] = frozenset()
    orphans: Mapping[sa.Table, sa.Table] = field(default_factory=dict)
    returning: Mapping[sa.Table, sa.Table] = field(default_factory=dict)

    def is_retained(self, table: sa.Table, stored: sa.FromClause) -> sa.ColumnElement[bool] | None:
        """The condition that a row of `stored`, the table or an alias of it, is retained; None: no row is."""
        left = self.is_left(table, stored)
        return None if left is None else sa.and_(self._is_active(table, stored), left)

    def is_left(self, table: sa.Table, stored: sa.FromClause) -> sa.ColumnElement[bool] | None:
        """The condition that the export says nothing of a row of `stored`, the table or an alias of it: it has no row
        for it, or a rejected one. None: it says something of each, if only by its absence from a bulk file."""
        files = self.list_files(table)
        if not files:
            # An absent file describes no record.
            return sa.true()
        if self.names_few(files):
            return sa.and_(*(~is_named(stored.c.sourced_id, file) for file in files))
        names = [file.file.name for file in files]
        rejected = [is_named(stored.c.sourced_id, self.rejected[name]) for name in names if name in self.rejected]
        return sa.or_(*rejected) if rejected else None

    def list_files(self, table: sa.Table) -> list[StagedFile]:
        """Returns the staged files with records of a table."""
        return [file for file in self.staged.values() if file.file.table is table]

    def list_with_rejected(self, table: sa.Table) -> list[StagedFile]:
        """Returns these files and their quarantines."""
        files = self.list_files(table)
        return [*files, *(self.rejected[file.file.name] for file in files if file.file.name in self.rejected)]

    def names_few(self, files: Iterable[StagedFile]) -> bool:
        """Whether one of these files does not describe all of its records: it is a delta, or the run has made it."""
        return any(file.file.name in self.deltas or file.file.name in self.made for file in files)

    def is_active_after(self, table: sa.Table, stored: sa.FromClause) -> sa.ColumnElement[bool] | None:
        """The condition that a row of `stored` is active after the run without a staged row: it is retained, or its
        line was not staged because it did not change. None: no such row."""
        is_retained = self.is_retained(table, stored)
        if table not in self.absent:
            return is_retained
        gone = sa.exists().where(self.absent[table].c.sourced_id == stored.c.sourced_id)
        same = sa.and_(self._is_active(table, stored), ~gone)
        return same if is_retained is None else sa.or_(same, is_retained)

    def _is_active(self, table: sa.Table, stored: sa.FromClause) -> sa.ColumnElement[bool]:
        """The condition that a row of `stored` is an active record of the feed and no orphan, or returns."""
        active = is_active(stored, self.feed_id)
        if table in self.orphans:
            orphan = self.orphans[table].alias()
            active = sa.and_(active, ~sa.exists().where(orphan.c.sourced_id == stored.c.sourced_id))
        if table not in self.returning:
            return active
        returning = self.returning[table].alias()
        return sa.or_(active, sa.exists().where(returning.c.sourced_id == stored.c.sourced_id))

    def select_lost(self, file: CsvFile) -> sa.Select[Any]:
        """The ids of the records of a file that are active now and will not be after the run. Raises ValueError for an
        absent file whose records all stay."""
        table = cast(sa.Table, file.table)
        stored = name_once(table)
        gone = [] if table not in self.orphans else [sa.select(self.orphans[table].c.sourced_id)]
        if file.name in self.staged:
            is_retained = self.is_active_after(table, stored)
            conditions = [is_active(stored, self.feed_id), ~is_live(stored.c.sourced_id, self.staged[file.name])]
            if table in self.absent:
                conditions.append(stored.c.sourced_id.in_(sa.select(self.absent[table].c.sourced_id)))
            if is_retained is not None:
                conditions.append(~is_retained)
            gone.append(sa.select(stored.c.sourced_id).where(*conditions))
        if not gone:
            raise ValueError("no record of the file is lost")
        ids = sa.union(*gone).subquery()
        return sa.select(ids.c.sourced_id)

    def is_own_part(self, file: CsvFile, stored: sa.FromClause) -> sa.ColumnElement[bool]:
        """The condition that a part in `stored`, the table that stores the rows of `file` or an alias of it, belongs to
        the feed. Parts of deleted users count, unless they are taken back."""
        users, owner = name_once(tables.users), _find_stored_column(file.owner.column, stored)
        of_feed = sa.exists().where(users.c.sourced_id == owner, users.c.feed_id == self.feed_id)
        exported = [stored.c.origin == "export"] if "origin" in stored.c else []
        return sa.and_(of_feed, stored.c.taken_back.is_not(True), *exported)

    def is_retained_part(self, file: CsvFile, stored: sa.FromClause) -> sa.ColumnElement[bool] | None:
        """The condition that a part in `stored` is retained; None: no part is.

        In bulk, that is a part whose row is rejected. Where a user has parts without ids, and one of the user's rows is
        rejected, all the user's parts are retained, because the rejected row may be any part without an id. Of an
        absent file, all parts are.
        """
        if file.name not in self.staged:
            return self.is_own_part(file, stored)
        key, owner = (
            _find_stored_column(file.find_cell("sourcedId").column, stored),
            _find_stored_column(file.owner.column, stored),
        )
        if file.name in self.deltas:
            return sa.and_(self.is_own_part(file, stored), ~is_named(key, self.staged[file.name]))
        if file.name not in self.rejected:
            return None
        rejected = self.rejected[file.name]
        twin = stored.alias()
        nameless = sa.exists().where(
            _find_stored_column(file.owner.column, twin) == owner,
            _find_stored_column(file.find_cell("sourcedId").column, twin).is_(None),
            self.is_own_part(file, twin),
        )
        of_user = sa.and_(owner.in_(sa.select(rejected[file.owner.header])), nameless)
        return sa.and_(self.is_own_part(file, stored), sa.or_(is_named(key, rejected), of_user))

    def find_retained(self, file: CsvFile) -> StagedFile | None:
        """The stored rows of a file that are active after the run without a staged row, under the headers of the file,
        with only the columns that the roster stores as text. None: no such row."""
        if file.is_source:
            return self._find_described(file)
        table = file.kept_in if file.table is None else file.table
        if table is None:
            return None
        stored = name_once(table)
        condition = self.is_retained_part(file, stored) if file.table is None else self.is_active_after(table, stored)
        if condition is None:
            return None
        columns = (
            _find_stored_column(cell.column, stored).label(cell.header)
            for cell in file.cells
            if cell.column is not None and isinstance(cell.column.type, sa.Text)
        )
        return StagedFile(file, sa.select(*columns).where(condition).subquery(), ())

    def _find_described(self, file: CsvFile) -> StagedFile | None:
        """The rejected rows of a file that the sync converts, where the record that the row describes is stored and
        active; of an absent file, the ids of its records. None: no such row."""
        rejected, identify = self.rejected.get(file.name), file.identify
        if file.table is None or identify is None:
            return None
        stored = name_once(file.table)
        rows: sa.Select[Any]
        if rejected is not None:
            described = stored.c.sourced_id == identify(self.feed_name, rejected["sourcedId"])
            rows = sa.select(*rejected.columns).where(described)
        elif file.name not in self.staged and not file.makes_ids:
            rows = sa.select(stored.c.sourced_id.label(file.key))
        else:
            return None
        return StagedFile(file, rows.where(is_active(stored, self.feed_id)).subquery(), ())

    def include_retained(self, file: StagedFile) -> StagedFile:
        """The live rows of a file together with the rows of `find_retained`, in the columns of the latter."""
        return Target(file, self.find_retained(file.file), None).join_rows()

    def list_targets(self, form: Format) -> Targets:
        """The rows that references to the files of a format may name. An absent file says nothing, so what it said last
        may be named."""
        absent = (file for file in form.files if file.name not in self.staged)
        return {
            **{
                file.name: Target(None, rows, None) for file in absent if (rows := self.find_retained(file)) is not None
            },
            **{
                name: Target(file, self.find_retained(file.file), self.rejected.get(name))
                for name, file in self.staged.items()
            },
        }


@dataclass(frozen=True)
class Target:
    """The rows of a file that a reference may name: its staged rows, None for an absent file; the stored ones that are
    active after the run without a staged row, and the rejected ones, None for none of them."""

    staged: StagedFile | None
    retained: StagedFile | None
    rejected: StagedFile | None

    def join_rows(self) -> StagedFile:
        """The live staged rows together with the retained ones, in the columns of the latter. Raises TypeError for an
        absent file."""
        file, retained = self.staged, self.retained
        if file is None:
            raise TypeError("the file is absent")
        if retained is None:
            return file
        headers = [column.name for column in retained.table.c]
        rows = sa.union_all(
            sa.select(*(file[header].label(header) for header in headers)).where(file.live),
            sa.select(*(retained[header].label(header) for header in headers)),
        )
        return StagedFile(file.file, rows.subquery(), ())


# The targets of references, by the name of their file.
Targets = Mapping[str, Target]


def _find_stored_column(column: sa.Column[Any] | None, stored: sa.FromClause) -> sa.ColumnElement[Any]:
    """The same column in `stored`, its table or an alias of it."""
    if column is None:
        raise TypeError("the cell is not stored in a column")
    return stored.c[column.name]


def is_live(identifier: sa.ColumnElement[str], file: StagedFile) -> sa.ColumnElement[bool]:
    """The condition that a live row of a file has this id."""
    rows = file.look_up()
    return sa.exists().where(sa.and_(rows["sourcedId"] == identifier, rows.live))


def is_named(identifier: sa.ColumnElement[Any], file: StagedFile) -> sa.ColumnElement[bool]:
    """The condition that a row of a file has this id."""
    named = file.look_up()
    return sa.exists().where(named["sourcedId"] == identifier)
