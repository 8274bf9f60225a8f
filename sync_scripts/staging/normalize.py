"""Staged cells that bend the rules, put right before anything else reads them.

A file is counted in one pass. Only a file that has something to put right is written again: what follows may trust
that a flag is `true` and a day is `YYYY-MM-DD`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, case, func, select

from sync_scripts.formats.model import Cell, Staged, StagedFile
from sync_scripts.formats.tolerated import STATUS_IN_BULK, Tolerance, describe_cells
from sync_scripts.staging.temporary import analyze_temporary, copy_columns, create_temporary


@dataclass(frozen=True)
class NormalizedFiles:
    """The staged files as they are read, and what was put up with."""

    files: Staged
    notices: tuple[str, ...]


def normalize(connection: Connection, staged: Staged, deltas: frozenset[str] = frozenset()) -> NormalizedFiles:
    """Counts and reads the quirks of all cells; the rows of `deltas` need the status that they have."""
    files = {}
    notices: list[str] = []
    for name, file in staged.items():
        files[name], told = _normalize_file(connection, file, in_bulk=name not in deltas)
        notices += told
    return NormalizedFiles(files, tuple(notices))


def _normalize_file(connection: Connection, file: StagedFile, *, in_bulk: bool) -> tuple[StagedFile, list[str]]:
    looked_for = list(_list_tolerances(file, in_bulk=in_bulk))
    if not looked_for:
        return file, []
    counts = connection.execute(
        select(*(func.count().filter(it.holds(file[cell.header])) for cell, it in looked_for)).select_from(file.table)
    ).one()
    found = [(cell, it, count) for (cell, it), count in zip(looked_for, counts, strict=True) if count]
    notices = [describe_cells(file.file.file_name, cell.header, count, it.deviation) for cell, it, count in found]
    if any(it.read is not None for _, it, _ in found):
        file = _rewrite(connection, file, [(cell, it) for cell, it, _ in found])
    return file, notices


def _list_tolerances(file: StagedFile, *, in_bulk: bool) -> Iterator[tuple[Cell, Tolerance]]:
    for cell in file.file.cells:
        if cell.header == "status" and in_bulk:
            yield cell, Tolerance(STATUS_IN_BULK, lambda status: status.is_not(None))
        yield from ((cell, tolerance) for tolerance in cell.kind.tolerates)


def _rewrite(connection: Connection, file: StagedFile, found: list[tuple[Cell, Tolerance]]) -> StagedFile:
    table = create_temporary(connection, f"normalized_{file.file.name}", copy_columns(file.columns))
    read = [_normalize_cell(column.name, column, found).label(column.name) for column in file.columns]
    connection.execute(table.insert().from_select([it.name for it in read], select(*read).select_from(file.table)))
    analyze_temporary(connection, table)
    return replace(file, table=table)


def _normalize_cell(name: str, column: ColumnElement[Any], found: list[tuple[Cell, Tolerance]]) -> ColumnElement[Any]:
    whens = [(it.holds(column), it.read(column)) for cell, it in found if cell.header == name and it.read is not None]
    return case(*whens, else_=column) if whens else column
