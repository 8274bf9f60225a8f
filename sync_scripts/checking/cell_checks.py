"""A check, and the checks of single cells."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from roster_service.db.tables import CText
from sync_scripts.formats.cells import is_blank
from sync_scripts.formats.model import LINE, STATEMENT_CACHE_SIZE, Cell, Staged, StagedFile

# The columns of a failing row beside its line: the cell, the reason, and the number of the cause of the row that it
# refers to, if that row is rejected.
VALUE, REASON, CAUSE = "value", "reason", "cause"
# What a reason says of this row alone; rows with the same reason have the same cause.
DETAIL = "detail"


@dataclass(frozen=True)
class Check:
    """A check of one column of a file. `failing` selects (line, value, reason, cause) of the rows that fail, and may
    select a detail that ends the reason; `cause` is NULL except for a row that fails only because it refers to a
    rejected one."""

    header: str
    failing: sa.Select[Any]


def select_rows(
    file: StagedFile, header: str, reason: str | sa.ColumnElement[str], *conditions: sa.ColumnElement[bool]
) -> sa.Select[Any]:
    """The failing rows of a file: those where all conditions hold. The value is the cell under the header."""
    return sa.select(
        file.line.label(LINE),
        file[header].label(VALUE),
        (sa.literal(reason, CText) if isinstance(reason, str) else reason).label(REASON),
        sa.cast(sa.null(), sa.Integer).label(CAUSE),
    ).where(*conditions)


def may_have_bad_cells(connection: sa.Connection, file: StagedFile, staged: Staged) -> bool:
    """Whether a cell of the file may be bad, given that every reference of all files finds its target."""
    # A cell that names a row is then as good as the checked id of that row; it is bad only if it must not be empty.
    naming = tuple(cell for cell in file.file.cells if _is_as_good_as_named(cell, file, staged))
    return connection.scalar(_ask_for_bad_cells(file, naming)) is True


@functools.lru_cache(STATEMENT_CACHE_SIZE)
def _ask_for_bad_cells(file: StagedFile, naming: tuple[Cell, ...]) -> sa.Select[bool]:
    alike = [cell for cell in file.file.cells if cell.kind.few_values]
    others = [cell for cell in file.file.cells if cell not in naming and cell not in alike]
    bad = [
        *(sa.and_(file.live, file[cell.header].is_(None)) for cell in naming if cell.required),
        *(condition for _, condition, _ in _list_cell_conditions(file, others)),
    ]
    asked = [sa.exists(sa.select(file.line).where(sa.or_(*bad)))]
    if alike:
        # OFFSET stops the planner from merging the subquery and checking the cells of every row.
        values = sa.select(*(file[cell.header] for cell in alike)).distinct().offset(0).subquery()
        distinct = StagedFile(file.file, values, ())
        bad = [condition for _, condition, _ in _list_cell_conditions(distinct, alike)]
        asked.append(sa.exists(sa.select(values).where(sa.or_(*bad))))
    return sa.select(sa.or_(*asked))


def _is_as_good_as_named(cell: Cell, file: StagedFile, staged: Staged) -> bool:
    if cell.refers is None or cell.many or cell.header == file.file.key or cell.refers.file not in staged:
        return False
    named = staged[cell.refers.file].file
    return named.find_cell(named.key).kind is cell.kind


def list_failing_cell_checks(connection: sa.Connection, file: StagedFile) -> Iterator[Check]:
    """The checks of the file's cells that at least one row fails."""
    conditions = list(_list_cell_conditions(file, file.file.cells))
    # Counting the failures of each check costs twice as much as asking whether there is any failure.
    if not connection.scalar(
        sa.select(sa.exists(sa.select(file.line).where(sa.or_(*(bad for _, bad, _ in conditions)))))
    ):
        return
    counts = connection.execute(
        sa.select(*(sa.func.count().filter(condition) for _, condition, _ in conditions)).select_from(file.table)
    ).one()
    for (header, condition, reason), count in zip(conditions, counts, strict=True):
        if count:
            yield Check(header, select_rows(file, header, reason, condition))


def _list_cell_conditions(file: StagedFile, cells: Iterable[Cell]) -> Iterator[tuple[str, sa.ColumnElement[bool], str]]:
    """(header, condition of a bad cell, reason) of each check of these cells."""
    for cell in cells:
        if cell.kind.secret:
            continue
        column = file[cell.header]
        # The sync reads only these two cells of a row that is marked as deleted.
        relevant = sa.true() if cell.header in ("sourcedId", "status") else file.live
        blank = is_blank(column)
        if cell.required:
            yield cell.header, sa.and_(relevant, blank), "must not be empty"
        if cell.kind.check is not None:
            bad = ~cell.kind.check(column)
            filled = ~blank if cell.required else column.is_not(None)
            yield cell.header, sa.and_(relevant, filled, bad), cell.kind.wants
