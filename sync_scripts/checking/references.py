"""The checks of references: of rows whose record is missing, and of optional ones.

A user leaves, and the export still has the user's enrollments: each of these rows is rejected, and its record would
stay active for good. The same holds for the records of a file that is absent, and for those that a delta does not name.
A record needs the records of its required references. The sync does not retain an orphan, so it marks it as deleted.

A later delta may bring the user back, and it does not name the enrollments. So a tombstone that ended by a need returns
when all of its needs are there, unless the export has ended it itself since: by its row in a delta, or by its absence
from a bulk file.

An optional reference without a target, or to its own row, is dropped, and so is one of several in a list, if others
have a target. An export without the guardians of its students would otherwise lose the students, and with them
everything that refers to them; a section whose second teacher left, its pupils; a user of two schools, of which one is
gone, everything. The row leaves no fingerprint, so the next run looks at it again: the target may be there by then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import aggregate_order_by
from sqlalchemy.schema import DropTable

from roster_service.db.tables import NEEDY, CText
from sync_scripts.formats.cells import to_list
from sync_scripts.formats.model import HASH, LINE, Cell, CellReference, CsvFile, Format, Staged, StagedFile
from sync_scripts.formats.tolerated import NO_TARGET, Tolerated
from sync_scripts.staging.retained import ACTIVE, Retention, is_live
from sync_scripts.staging.temporary import analyze_temporary, count_lines, create_ids, create_temporary


def follow_needs(connection: sa.Connection, form: Format, retention: Retention) -> Retention:
    """The retention without the orphans among its records, and with those that return. Call it again after rows are
    rejected."""
    orphans, returning = dict(retention.orphans), dict(retention.returning)
    retention = replace(retention, orphans=orphans, returning=returning)
    for table in NEEDY:
        # What an orphan needs may be an orphan: the tables come in the order of their references.
        _find_returning(connection, form, retention, table, returning)
        needs = list(_list_needs(form, table, retention))
        stays = retention.is_active_after(table, table) if needs else None
        if stays is None:
            continue
        # A query for each column, because the planner finds the few records of lost ids by an index only if the
        # condition stands alone.
        found = sa.union(
            *(
                sa.select(table.c.sourced_id).where(stays, column.in_(retention.select_lost(file)))
                for column, _, file in needs
            )
        )
        if table not in orphans:
            # The check costs a few look-ups, and hardly any run has orphans.
            if not connection.scalar(sa.select(sa.exists(found))):
                continue
            orphans[table] = create_ids(connection, f"orphans_{table.name}")
        connection.execute(orphans[table].insert().from_select(["sourced_id"], found))
        analyze_temporary(connection, orphans[table])
    return retention


def _find_returning(
    connection: sa.Connection,
    form: Format,
    retention: Retention,
    table: sa.Table,
    returning: dict[sa.Table, sa.Table],
) -> None:
    """Makes a temporary table of the tombstones of a table that return, if some do. Rows that were rejected since the
    last call may have been what they need."""
    if table in returning:
        connection.execute(DropTable(returning.pop(table)))
    needs = list(_list_all_needs(form, table))
    ended = [table.c.feed_id == retention.feed_id, table.c.status != ACTIVE, table.c.ended_by_need]
    left = retention.is_left(table, table) if needs else None
    if left is None or not connection.scalar(sa.select(sa.exists().where(*ended))):
        return
    there = (_is_there(column, refers, target, retention) for column, refers, target in needs)
    # Of the rows of another format that describe one record, some may be rejected and others not: these bring it back.
    unsaid = (~is_live(table.c.sourced_id, file) for file in retention.list_files(table))
    found = sa.select(table.c.sourced_id).where(*ended, left, *unsaid, *there)
    if not connection.scalar(sa.select(sa.exists(found))):
        return
    returning[table] = create_ids(connection, f"returning_{table.name}")
    connection.execute(returning[table].insert().from_select(["sourced_id"], found))
    analyze_temporary(connection, returning[table])


def _is_there(
    identifier: sa.ColumnElement[str], refers: CellReference, target: CsvFile, retention: Retention
) -> sa.ColumnElement[bool]:
    """The condition that the record with this id is active after the run, and may be referred to so."""
    files = retention.list_files(cast(sa.Table, target.table))
    return sa.or_(sa.false(), *list_found(identifier, refers, *files, retention.find_retained(target)))


def list_found(
    name: sa.ColumnElement[str], refers: CellReference, *targets: StagedFile | None, naming: StagedFile | None = None
) -> Iterator[sa.ColumnElement[bool]]:
    """The conditions of which one holds if a name has a live target. `targets`: the rows that it may name; `naming`:
    those that name them, of which none may name itself, and which may have a cell in common with their target."""
    for target in targets:
        if target is not None:
            rows = target.look_up()
            of_type = [rows["type"].in_(refers.types)] if refers.types else []
            shared = [] if refers.same is None or naming is None else [rows[refers.same] == naming[refers.same]]
            if naming is not None and refers.file == naming.file.name:
                shared.append(rows["sourcedId"] != naming["sourcedId"])
            yield sa.exists().where(rows["sourcedId"] == name, rows.live, *of_type, *shared)


# (column of a required reference of a table, the reference, the file of its target)
Need = tuple[sa.Column[Any], CellReference, CsvFile]


def _list_needs(form: Format, table: sa.Table, retention: Retention) -> Iterator[Need]:
    """What records of a table need, of targets that the run may lose."""
    for column, refers, target in _list_all_needs(form, table):
        if target.name in retention.staged or cast(sa.Table, target.table) in retention.orphans:
            yield column, refers, target


def _list_all_needs(form: Format, table: sa.Table) -> Iterator[Need]:
    for file in form.files:
        if file.table is table:
            for cell in file.cells:
                if cell.is_needed and cell.refers is not None and cell.column is not None:
                    yield cell.column, cell.refers, form.find_file(cell.refers.file)


# (a file, a name in its rows, the reference's cell) -> the conditions of which one holds if the name has a target
ListTargets = Callable[[StagedFile, sa.ColumnElement[str], Cell], list[sa.ColumnElement[bool]]]


class DroppedReferences:
    """The optional references without a target, counted by file and column: those that a run drops, and those that
    stand."""

    def __init__(self) -> None:
        self._dropped: Counter[tuple[str, str]] = Counter()
        self._kept: dict[tuple[str, str], int] = {}
        # The least of the lines of exported rows.
        self._lines: dict[tuple[str, str], int] = {}

    def drop(
        self, connection: sa.Connection, staged: Staged, list_targets: ListTargets, failed: Collection[str] | None
    ) -> None:
        """Empties the optional references of the staged rows that have no target, unless they stand; of a list, the
        items without one, but not all of one that may not be empty. `failed`: the names of the files whose rows may
        have gone; None: of any file, and of absent ones."""
        for file, cell, refers in _list_losable(staged, failed):
            place, name = (file.file.file_name, cell.header), _name(file, cell)
            # Each condition stands alone, so that the planner makes an anti-join of it.
            lost = [~target for target in list_targets(file, name, cell)]
            if not cell.stands:
                self._note(place, file, _drop(connection, file, cell, _select(file, cell, *lost)))
                continue
            if refers.tree:
                # No row is above itself.
                own = _select(file, cell, name == file["sourcedId"])
                self._note(place, file, _drop(connection, file, cell, own))
            # Each round counts them anew. A converted row was counted where it was exported.
            if HASH in file.table.c:
                kept, line = count_lines(connection, _select(file, cell, *lost).subquery())
                self._note(place, file, (0, line))
                self._kept[place] = kept

    def _note(self, place: tuple[str, str], file: StagedFile, rows: tuple[int, int | None]) -> None:
        """Counts dropped references. `rows`: their number, and the first of their lines."""
        count, line = rows
        self._dropped[place] += count
        # The lines of converted rows are of no file.
        if line is not None and HASH in file.table.c:
            self._lines[place] = min(line, self._lines.get(place, line))

    def list_notices(self) -> Iterator[Tolerated]:
        """One notice for each column with such references."""
        for place in {**self._dropped, **self._kept}:
            if count := self._dropped[place] + self._kept.get(place, 0):
                yield Tolerated(place[0], NO_TARGET, place[1], count, line=self._lines.get(place))


def _list_losable(staged: Staged, failed: Collection[str] | None) -> Iterator[tuple[StagedFile, Cell, CellReference]]:
    for file in staged.values():
        for cell in file.file.cells:
            refers = cell.refers
            # The school of an enrollment gives way to that of its class, which is told there.
            has_notice = cell.stands and cell.required
            if refers and cell.may_lose and not has_notice and (failed is None or refers.file in failed):
                yield file, cell, refers


def _list_items(file: StagedFile, cell: Cell) -> sa.TableValuedAlias:
    return sa.func.unnest(to_list(file[cell.header])).table_valued("item", with_ordinality="number").render_derived()


def _name(file: StagedFile, cell: Cell) -> sa.ColumnElement[str]:
    """The id in a cell, or of an item of its list."""
    return sa.column("item", CText) if cell.many else file[cell.header]


def _select(file: StagedFile, cell: Cell, *conditions: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """(line, name) of the references of a column for which the conditions hold. The check of the cell rejects an empty
    item."""
    name = _name(file, cell)
    rows = file.table.join(_list_items(file, cell), sa.true()) if cell.many else file.table
    found = sa.select(file.line, name.label("name")).select_from(rows)
    return found.where(file.live, file[cell.header].is_not(None), name != "", *conditions)


def _drop(connection: sa.Connection, file: StagedFile, cell: Cell, lost: sa.Select[Any]) -> tuple[int, int | None]:
    """Drops the references of one column that `lost` selects. Returns the number of rows that had one, and the first of
    their lines."""
    if not connection.scalar(sa.select(sa.exists(lost))):
        return 0, None
    table, columns = cast(sa.Table, file.table), (sa.column(LINE, sa.BigInteger), sa.column("name", CText))
    found = create_temporary(connection, f"dropped_{table.name}_{cell.header}", columns)
    connection.execute(found.insert().from_select([LINE, "name"], lost))
    analyze_temporary(connection, found)
    kept: sa.ColumnElement[Any] = sa.null()
    if cell.many:
        items = _list_items(file, cell)
        joined = sa.func.string_agg(
            items.c.item, aggregate_order_by(sa.literal(",", CText), items.c.number), type_=CText
        )
        is_lost = sa.exists().where(found.c[LINE] == file.line, found.c.name == items.c.item)
        kept = sa.select(joined).select_from(items).where(~is_lost).scalar_subquery()
    values: dict[str, Any] = {cell.header: kept}
    if HASH in table.c:
        values[HASH] = sa.null()
    dropped = sa.update(table).where(file.line.in_(sa.select(found.c[LINE])))
    if not cell.is_dropped:
        dropped = dropped.where(kept.is_not(None))
    counted = count_lines(connection, dropped.values(values).returning(file.line).cte("emptied"))
    # The next round may drop more references of the column.
    connection.execute(DropTable(found))
    return counted
