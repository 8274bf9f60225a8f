"""The records of a feed that are active after a run."""

from __future__ import annotations

import sqlalchemy as sa

from sync_scripts.applying.identified_parts import Rows
from sync_scripts.formats.model import Staged
from sync_scripts.staging.retained import Retention


def select_current(
    table: sa.Table, staged: Staged, retention: Retention, *names: str, only: tuple[str, sa.Table] | None = None
) -> Rows:
    """(id, the columns `names`) of every record of the feed that is active after the run: the staged ones, and the
    stored ones that stay active without a staged row. `only`: a column, and the table of the ids to which it is
    limited."""
    found: list[Rows] = []
    for file in staged.values():
        if file.file.table is table:
            cells = {cell.column.name: cell for cell in file.file.cells if cell.column is not None}
            columns = [cells[name].kind.convert(file[cells[name].header]).label(name) for name in names]
            chosen = [] if only is None else [file[cells[only[0]].header].in_(sa.select(only[1].c.sourced_id))]
            found.append(sa.select(file["sourcedId"].label("sourced_id"), *columns).where(file.live, *chosen))
    stored = table.alias()
    condition = retention.is_active_after(table, stored)
    if condition is not None:
        chosen = [] if only is None else [stored.c[only[0]].in_(sa.select(only[1].c.sourced_id))]
        found.append(sa.select(stored.c.sourced_id, *(stored.c[name] for name in names)).where(condition, *chosen))
    return found[0] if len(found) == 1 else sa.union_all(*found)
