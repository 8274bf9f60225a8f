"""The refused rows of a staged file: taken out of it, and kept aside with the place where they stood."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from sqlalchemy import Column, Connection, Select, Subquery, Table, delete, func, insert, select, union_all
from sqlalchemy.types import UserDefinedType

from sync_scripts.formats import StagedFile
from sync_scripts.temporary import analyze_temporary, create_temporary, like

HEADER_LINES = 1
PLACE = "place"


class TupleId(UserDefinedType[Any]):
    """PostgreSQL's `tid`: where a row lies, which for a staged row is its place in the file."""

    cache_ok = True

    def get_col_spec(self, **_options: Any) -> str:
        """The type's name."""
        return "tid"


def take_out(
    connection: Connection, file: StagedFile, failing: Sequence[Select[Any]], aside: StagedFile | None
) -> tuple[StagedFile, int]:
    """Moves the rows with the places that `failing` selects to those that were set aside before.

    Returns the rows set aside, and how many rows were moved now.
    """
    secrets = {cell.header for cell in file.file.cells if cell.kind.secret}
    columns = [column for column in file.table.columns if column.name not in ("ctid", *secrets)]
    if aside is None:
        made = create_temporary(connection, f"refused_{file.file.name}", [Column(PLACE, TupleId()), *like(columns)])
        aside = StagedFile(file.file, made, file.metadata_keys)
    bad = union_all(*(select(found.subquery().c.ctid) for found in failing)).subquery()
    rows = select(file["ctid"], *columns).where(file["ctid"].in_(select(bad.c.ctid)))
    names = [PLACE, *(column.name for column in columns)]
    refused, staged = cast(Table, aside.table), cast(Table, file.table)
    moved = connection.execute(insert(refused).from_select(names, rows)).rowcount
    connection.execute(delete(staged).where(file["ctid"].in_(select(aside[PLACE]))))
    analyze_temporary(connection, refused)
    return aside, moved


def number_lines(file: StagedFile, aside: StagedFile | None) -> Subquery:
    """(place, line) of every row of the file, those set aside among them."""
    places = [select(file["ctid"].label(PLACE))]
    if aside is not None:
        places.append(select(aside[PLACE]))
    rows = union_all(*places).subquery() if len(places) > 1 else places[0].subquery()
    line = (func.row_number().over(order_by=rows.c.place) + HEADER_LINES).label("line")
    return select(rows.c.place, line).subquery("lines")
