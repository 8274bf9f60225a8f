"""Optional references that lead nowhere: the sync drops the reference and keeps the row.

An export without the guardians of its students would otherwise lose the students, and with them everything that refers
to them. The row leaves no fingerprint, so the next run looks at it again: the target may be there by then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import Any, cast

from sqlalchemy import ColumnElement, Connection, Table, and_, exists, func, literal, null, or_, select, true, update
from sqlalchemy.dialects.postgresql import aggregate_order_by

from roster_service.db.tables import CText
from sync_scripts.formats.cells import to_list
from sync_scripts.formats.model import HASH, Cell, StagedFile
from sync_scripts.formats.tolerated import NO_TARGET, Tolerated
from sync_scripts.staging.retained import Retention

# (a name, the reference's cell) -> the condition that the name has a target
HasTarget = Callable[[ColumnElement[str], Cell], ColumnElement[bool]]


class DroppedReferences:
    """The optional references that a run drops, counted by file and column."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()

    def drop(
        self, connection: Connection, retention: Retention, has_target: HasTarget, targets: Collection[str] | None
    ) -> None:
        """Empties the optional references of the staged rows that have no target; of a list, the items without one.
        `targets`: the names of the files whose rows may have gone; None: of any file, and of absent ones."""
        for file in retention.staged.values():
            for cell in file.file.cells:
                refers = cell.refers
                if refers is not None and is_optional(file, cell) and (targets is None or refers.file in targets):
                    count = _drop(connection, file, cell, has_target)
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


def _drop(connection: Connection, file: StagedFile, cell: Cell, has_target: HasTarget) -> int:
    column = file[cell.header]
    filled = and_(file.live, column.is_not(None))
    kept: ColumnElement[Any] = null()
    lost: ColumnElement[bool]
    if cell.many:
        items = func.unnest(to_list(column)).table_valued("item", with_ordinality="number").render_derived()
        lost = exists(select(items.c.item).where(items.c.item != "", ~has_target(items.c.item, cell)))
        joined = func.string_agg(items.c.item, aggregate_order_by(literal(",", CText), items.c.number), type_=CText)
        good = or_(items.c.item == "", has_target(items.c.item, cell))
        kept = select(joined).select_from(items).where(good).scalar_subquery()
    else:
        lost = and_(column != "", ~has_target(column, cell))
    if not connection.scalar(select(exists(select(true()).select_from(file.table).where(filled, lost)))):
        return 0
    table = cast(Table, file.table)
    values: dict[str, Any] = {cell.header: kept}
    if HASH in table.c:
        values[HASH] = null()
    return connection.execute(update(table).where(filled, lost).values(values)).rowcount
