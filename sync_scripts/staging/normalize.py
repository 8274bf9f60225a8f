"""Normalizes staged cells: corrects tolerated deviations before any other step reads the cells.

One pass counts the deviations of a file. Only a file with cells to correct is written again. After this step a flag is
`true` or `false` and a day is `YYYY-MM-DD`, unless the cell is bad.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, case, exists, func, or_, select

from sync_scripts.formats.cells import SLASHES, may_have_slashes
from sync_scripts.formats.model import Cell, Staged, StagedFile
from sync_scripts.formats.tolerated import STATUS_IN_BULK, Notice, Tolerance, Tolerated
from sync_scripts.staging.temporary import analyze_temporary, copy_columns, create_temporary


@dataclass(frozen=True)
class NormalizedFiles:
    """The staged files with corrected cells, and the notices about the tolerated deviations."""

    files: Staged
    notices: tuple[Notice, ...]


def normalize(connection: Connection, staged: Staged, deltas: frozenset[str] = frozenset()) -> NormalizedFiles:
    """Counts and corrects the tolerated deviations of all cells. A status is a deviation in a bulk file; the rows of
    `deltas` need theirs."""
    files = {}
    notices: list[Notice] = []
    for name, file in staged.items():
        files[name], found = _normalize_file(connection, file, in_bulk=name not in deltas)
        notices += found
    return NormalizedFiles(files, tuple(notices))


def _normalize_file(connection: Connection, file: StagedFile, *, in_bulk: bool) -> tuple[StagedFile, list[Notice]]:
    tolerances = list(_list_tolerances(file, in_bulk=in_bulk))
    found, clashes = _find_tolerated(connection, file, tolerances)
    early = [it for it in found if it.tolerance.early]
    if early:
        file = _rewrite(connection, file, early, "prepared")
        later = [(cell, tolerance) for cell, tolerance in tolerances if not tolerance.early]
        found, clashes = _find_tolerated(connection, file, later)
    if any(it.tolerance.read is not None for it in found):
        file = _rewrite(connection, file, found, "normalized")
    name = file.file.file_name
    said = (it for it in (*early, *found) if not it.tolerance.usual)
    notices = [Tolerated(name, it.tolerance.deviation, it.cell.header, it.count) for it in said]
    return file, [*notices, *(f"{name}, column {it.cell.header}: {it.tolerance.clash}" for it in clashes)]


@dataclass(frozen=True)
class _Found:
    """A deviation of the cells of a column, and the number of rows that have it."""

    cell: Cell
    tolerance: Tolerance
    count: int


def _find_tolerated(
    connection: Connection, file: StagedFile, tolerances: list[tuple[Cell, Tolerance]]
) -> tuple[list[_Found], list[_Found]]:
    """(the deviations of the cells, those that are not read because their columns contradict themselves)."""
    asked = [
        (place, condition(file[cell.header]))
        for place, (cell, it) in enumerate(tolerances)
        for condition in (it.holds, it.needs, it.excluded_by)
        if condition is not None
    ]
    if not asked:
        return [], []
    counted = select(*(func.count().filter(condition) for _, condition in asked)).select_from(file.table)
    counts: dict[int, list[int]] = {}
    for (place, _), count in zip(asked, connection.execute(counted).one(), strict=True):
        counts.setdefault(place, []).append(count)
    found, clashes = list[_Found](), list[_Found]()
    for place, (cell, it) in enumerate(tolerances):
        count, *others = counts[place]
        is_needed = it.needs is None or others.pop(0) > 0
        is_excluded = it.excluded_by is not None and others.pop(0) > 0
        if count and is_needed:
            (clashes if is_excluded else found).append(_Found(cell, it, count))
    return found, [it for it in clashes if it.tolerance.clash]


def _list_tolerances(file: StagedFile, *, in_bulk: bool) -> Iterator[tuple[Cell, Tolerance]]:
    for cell in file.file.cells:
        if cell.header == "status" and in_bulk:
            yield cell, Tolerance(STATUS_IN_BULK, lambda status: status.is_not(None))
        yield from ((cell, tolerance) for tolerance in cell.kind.tolerates)


def _rewrite(connection: Connection, file: StagedFile, found: list[_Found], name: str) -> StagedFile:
    table = create_temporary(connection, f"{name}_{file.file.name}", copy_columns(file.columns))
    read = [_normalize_cell(column.name, column, found).label(column.name) for column in file.columns]
    connection.execute(table.insert().from_select([it.name for it in read], select(*read).select_from(file.table)))
    analyze_temporary(connection, table)
    return replace(file, table=table)


def _normalize_cell(name: str, column: ColumnElement[Any], found: list[_Found]) -> ColumnElement[Any]:
    own = (it.tolerance for it in found if it.cell.header == name)
    whens = [(it.holds(column), it.read(column)) for it in own if it.read is not None]
    return case(*whens, else_=column) if whens else column


def find_days_with_slashes(connection: Connection, staged: Staged) -> list[str]:
    """The names of the files with a day whose order depends on the other rows of its column."""
    found = []
    for name, file in staged.items():
        days = [file[cell.header] for cell in file.file.cells if SLASHES[0] in cell.kind.tolerates]
        if days and connection.scalar(select(exists(select(file.line).where(or_(*map(may_have_slashes, days)))))):
            found.append(name)
    return found
