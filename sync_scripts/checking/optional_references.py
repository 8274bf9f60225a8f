"""Optional references that lead nowhere: the sync drops the reference and keeps the row.

An export without the guardians of its students would otherwise lose the students, and with them everything that refers
to them. The row leaves no fingerprint, so the next run looks at it again: the target may be there by then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import aggregate_order_by
from sqlalchemy.schema import DropTable

from roster_service.db.tables import CText
from sync_scripts.formats.cells import to_list
from sync_scripts.formats.model import HASH, LINE, Cell, Staged, StagedFile
from sync_scripts.formats.tolerated import NO_TARGET, Tolerated
from sync_scripts.staging.temporary import analyze_temporary, create_temporary

# (a name, the reference's cell) -> the conditions of which one holds if the name has a target
ListTargets = Callable[[sa.ColumnElement[str], Cell], list[sa.ColumnElement[bool]]]


class DroppedReferences:
    """The optional references that a run drops, counted by file and column."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()

    def drop(
        self, connection: sa.Connection, staged: Staged, list_targets: ListTargets, failed: Collection[str] | None
    ) -> None:
        """Empties the optional references of the staged rows that have no target; of a list, the items without one.
        `failed`: the names of the files whose rows may have gone; None: of any file, and of absent ones."""
        for file in staged.values():
            for cell in file.file.cells:
                refers = cell.refers
                if refers is not None and is_optional(file, cell) and (failed is None or refers.file in failed):
                    count = _drop(connection, file, cell, list_targets)
                    self._counts[file.file.file_name, cell.header] += count

    def list_notices(self) -> Iterator[Tolerated]:
        """One notice for each column with dropped references."""
        for (file_name, header), count in self._counts.items():
            if count:
                yield Tolerated(file_name, NO_TARGET, header, count)


def is_optional(file: StagedFile, cell: Cell) -> bool:
    """Whether the cell is a reference that may be empty, in a file of OneRoster. A row of Clever or School Data Sync
    stands for several records, and without the reference some of them would be others."""
    return cell.refers is not None and not cell.required and file.file.subject is None


def _drop(connection: sa.Connection, file: StagedFile, cell: Cell, list_targets: ListTargets) -> int:
    """Drops the references of one column. Returns the number of rows that had one."""
    column = file[cell.header]
    items = sa.func.unnest(to_list(column)).table_valued("item", with_ordinality="number").render_derived()
    name: sa.ColumnElement[str] = items.c.item if cell.many else column
    rows: sa.FromClause = file.table.join(items, sa.true()) if cell.many else file.table
    # Each condition stands alone, so that the planner makes an anti-join of it. The check of the cell rejects an empty
    # item.
    without_target = (~target for target in list_targets(name, cell))
    lost = (
        sa.select(file.line, name.label("name"))
        .select_from(rows)
        .where(file.live, column.is_not(None), name != "", *without_target)
    )
    if not connection.scalar(sa.select(sa.exists(lost))):
        return 0
    table = cast(sa.Table, file.table)
    columns: list[sa.Column[Any]] = [sa.Column(LINE, sa.BigInteger), sa.Column("name", CText)]
    found = create_temporary(connection, f"dropped_{table.name}_{cell.header}", columns)
    connection.execute(found.insert().from_select([LINE, "name"], lost))
    analyze_temporary(connection, found)
    kept: sa.ColumnElement[Any] = sa.null()
    if cell.many:
        joined = sa.func.string_agg(
            items.c.item, aggregate_order_by(sa.literal(",", CText), items.c.number), type_=CText
        )
        is_lost = sa.exists().where(found.c[LINE] == file.line, found.c.name == items.c.item)
        kept = sa.select(joined).select_from(items).where(~is_lost).scalar_subquery()
    values: dict[str, Any] = {cell.header: kept}
    if HASH in table.c:
        values[HASH] = sa.null()
    count = connection.execute(sa.update(table).where(file.line.in_(sa.select(found.c[LINE]))).values(values)).rowcount
    # The next round may drop more references of the column.
    connection.execute(DropTable(found))
    return count
