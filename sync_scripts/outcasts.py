"""The refused rows of a staged file: taken out of it, and kept aside with the place where they stood."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from sqlalchemy import Column, Connection, Select, Subquery, Table, delete, func, insert, select, union_all

from sync_scripts.formats import StagedFile
from sync_scripts.temporary import PLACE, analyze_temporary, create_temporary, like

HEADER_LINES = 1


def set_aside(
    connection: Connection, file: StagedFile, failing: Sequence[Select[Any]], aside: StagedFile | None
) -> tuple[StagedFile, int]:
    """Copies the rows with the places that `failing` selects to those that were set aside before; `take_out` then
    removes them, once no check of any file looks at them any more.

    Returns the rows set aside, and how many of them are new.
    """
    columns = file.columns
    if aside is None:
        aside = make_aside(connection, file)
    bad = union_all(*(select(found.subquery().c.ctid) for found in failing)).subquery()
    rows = select(file.place, *columns).where(file.place.in_(select(bad.c.ctid)))
    names = [PLACE, *(column.name for column in columns)]
    refused = cast(Table, aside.table)
    added = connection.execute(insert(refused).from_select(names, rows)).rowcount
    analyze_temporary(connection, refused)
    return aside, added


def make_aside(connection: Connection, file: StagedFile) -> StagedFile:
    """An empty table for the refused rows of a file."""
    place = Column(PLACE, file.place_type)
    made = create_temporary(connection, f"refused_{file.file.name}", [place, *like(file.columns)])
    return StagedFile(file.file, made, file.metadata_keys)


def take_out(connection: Connection, file: StagedFile, aside: StagedFile) -> None:
    """Removes the rows that were set aside from their file."""
    for rest in (file,) if file.fresh is None else (file, file.fresh):
        connection.execute(delete(cast(Table, rest.table)).where(rest.place.in_(select(aside[PLACE]))))


def number_lines(file: StagedFile, aside: StagedFile | None) -> Subquery:
    """(place, line) of every row of the file, those set aside among them."""
    if file.gone is not None:
        lines = [select(it.place.label(PLACE), it.place.label("line")) for it in (file, aside) if it is not None]
        return union_all(*lines).subquery("lines")
    places = [select(file.place.label(PLACE))]
    if aside is not None:
        places.append(select(aside[PLACE]))
    rows = union_all(*places).subquery() if len(places) > 1 else places[0].subquery()
    line = (func.row_number().over(order_by=rows.c.place) + HEADER_LINES).label("line")
    return select(rows.c.place, line).subquery("lines")
