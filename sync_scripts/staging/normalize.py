"""Normalizes the headers and the words of an export.

It is a small CSV file of the operator, with the columns file, column, word and means. A cell with a mapped word is read
as the meaning before any other step reads it. Letter case and spaces around a word make no difference.

One pass counts the deviations of a file. Only a file with cells to correct is written again. After this step a flag is
`true` or `false` and a day is `YYYY-MM-DD`, unless the cell is bad.
"""

from __future__ import annotations

import csv
import functools
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa
from oneroster_filter import fold

from roster_service.db.folding import fold_column
from roster_service.db.tables import CText, CTexts
from sync_scripts.formats.cells import (
    ORDERS,
    SLASHES,
    SLASHES_AFTER_DAY_FIRST,
    is_list,
    map_items,
    may_have_slashes,
    to_list,
)
from sync_scripts.formats.model import GONE, STATEMENT_CACHE_SIZE, Cell, CsvFile, Format, Staged, StagedFile
from sync_scripts.formats.tolerated import (
    GONE_STATUS,
    MAPPED_WORD,
    STATUS_IN_BULK,
    Notice,
    SQLText,
    Tolerance,
    Tolerated,
)
from sync_scripts.reading.manifest import Contents
from sync_scripts.reading.rejections import Findings, RefusedExportError, Rejection, refuse_if
from sync_scripts.staging.temporary import analyze_temporary, create_temporary

# The name of the mapping in the reasons for which a run refuses it.
NAME = "the mapping of words"
HEADER = ["file", "column", "word", "means"]


def _is_one_of(*words: str) -> Callable[[SQLText], sa.ColumnElement[bool]]:
    """The condition that a status is one of these words, in any letter case."""
    return lambda status: sa.func.lower(sa.func.btrim(status)).in_(words)


# A status that deletes is counted apart, so that no notice of a status that changes nothing covers it.
_BULK_STATUS = (
    Tolerance(GONE_STATUS, _is_one_of(*GONE)),
    Tolerance(STATUS_IN_BULK, lambda status: sa.and_(status.is_not(None), ~_is_one_of(*GONE)(status))),
)
# `inactive` is the word of OneRoster 1.0; an exporter may mean a record that stays.
_DELTA_STATUS = (Tolerance(GONE_STATUS, _is_one_of("inactive")),)


@dataclass(frozen=True)
class MappedWord:
    """A row of the mapping, and its line."""

    line: int
    file: str
    column: str
    word: str
    means: str


def read_word_map(text: str) -> list[MappedWord]:
    """The rows of a mapping. Raises RefusedExportError where it is no CSV of four filled columns."""
    try:
        reader = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if any(row)]
    except csv.Error as error:
        raise RefusedExportError(Findings.of([Rejection(NAME, f"is no CSV: {error}")])) from None
    if not rows or rows[0][1] != HEADER:
        raise RefusedExportError(Findings.of([Rejection(NAME, f"the header must be {','.join(HEADER)}", 1)]))
    bad = [line for line, row in rows[1:] if len(row) != len(HEADER) or not all(row)]
    refuse_if(Findings.of(Rejection(NAME, f"must have {len(HEADER)} filled cells", line) for line in bad))
    return [MappedWord(line, *row) for line, row in rows[1:]]


def map_words(connection: sa.Connection, text: str, form: Format, contents: Contents) -> tuple[Format, Contents]:
    """(the format, the contents), where the cells of mapped columns tolerate the words of the mapping `text`. Raises
    RefusedExportError for a row that the format cannot use."""
    words = read_word_map(text)
    refuse_if(Findings.of(_find_bad_words(connection, form, words)))
    meanings: dict[tuple[str, str], dict[str, str]] = {}
    for word in words:
        meanings.setdefault((word.file, word.column), {})[fold(word.word)] = word.means
    form = replace(form, files=tuple(_map_file(file, meanings) for file in form.files))
    files, silent = (tuple(form.find_file(file.name) for file in found) for found in (contents.files, contents.silent))
    return form, replace(contents, files=files, silent=silent)


def require_words(connection: sa.Connection, text: str, forms: Sequence[Format]) -> None:
    """Raises RefusedExportError, as `map_words`, for a mapping that none of the formats of a family can use: which of
    them an export has, it alone tells. `forms`: the newest last, whose reasons count unless another one has fewer."""
    words = read_word_map(text)
    found = [Findings.of(_find_bad_words(connection, form, words)) for form in reversed(forms)]
    refuse_if(min(found, key=lambda findings: findings.total))


def _find_bad_words(connection: sa.Connection, form: Format, words: list[MappedWord]) -> Iterator[Rejection]:
    files = {file.name: file for file in form.files}
    for word in words:
        if word.file not in files:
            yield Rejection(NAME, f"is no file of {form.name}", word.line, "file", word.file)
        elif word.column not in files[word.file].headers:
            yield Rejection(NAME, f"is no column of {word.file}.csv", word.line, "column", word.column)
        else:
            kind = files[word.file].find_cell(word.column).kind
            if not (kind.few_values or is_list(kind)):
                yield Rejection(NAME, "is no column of words", word.line, "column", word.column)
            elif kind.check is not None and not connection.scalar(sa.select(kind.check(sa.literal(word.means, CText)))):
                yield Rejection(NAME, kind.wants, word.line, "means", word.means)


def _map_file(file: CsvFile, meanings: Mapping[tuple[str, str], Mapping[str, str]]) -> CsvFile:
    words = ((cell, meanings.get((file.name, cell.header))) for cell in file.cells)
    return replace(file, cells=tuple(_map_cell(cell, found) if found else cell for cell, found in words))


def _map_cell(cell: Cell, words: Mapping[str, str]) -> Cell:
    """The cell with one more tolerance, before all others."""

    def read(text: SQLText) -> SQLText:
        meanings = {word: sa.literal(means, CText) for word, means in words.items()}
        return sa.case(meanings, value=fold_column(sa.func.btrim(text)), else_=text)

    def has_mapped_item(text: SQLText) -> sa.ColumnElement[bool]:
        overlaps: sa.ColumnElement[bool] = to_list(fold_column(text)).overlap(sa.literal(list(words), CTexts))
        return overlaps

    if is_list(cell.kind):
        tolerance = Tolerance(MAPPED_WORD, has_mapped_item, lambda text: map_items(text, read), early=True)
    else:
        tolerance = Tolerance(
            MAPPED_WORD, lambda text: fold_column(sa.func.btrim(text)).in_(tuple(words)), read, early=True
        )
    return replace(cell, kind=replace(cell.kind, tolerates=(tolerance, *cell.kind.tolerates)))


@dataclass(frozen=True)
class NormalizedFiles:
    """The staged files with corrected cells, and the notices about the tolerated deviations. `day_first`: the columns
    whose days with slashes had the day first when they were read last, as `name_column` names them."""

    files: Staged
    notices: tuple[Notice, ...]
    day_first: frozenset[str]


def name_column(file: CsvFile, cell: Cell) -> str:
    """The name of a column of a feed, as `feeds.day_first` has it."""
    return f"{file.file_name} {cell.header}"


def normalize(
    connection: sa.Connection, staged: Staged, deltas: frozenset[str], day_first: frozenset[str]
) -> NormalizedFiles:
    """Counts and corrects the tolerated deviations of all cells. A status is a deviation in a bulk file; the rows of
    `deltas` need theirs. `day_first`: of the exports before, as in the result."""
    files = {}
    notices: list[Notice] = []
    for name, file in staged.items():
        files[name], said, orders = _normalize_file(connection, file, None if name not in deltas else day_first)
        notices += said
        day_first = day_first - set(orders) | {column for column, is_day_first in orders.items() if is_day_first}
    return NormalizedFiles(files, tuple(notices), day_first)


def _normalize_file(
    connection: sa.Connection, file: StagedFile, day_first: frozenset[str] | None
) -> tuple[StagedFile, list[Notice], dict[str, bool]]:
    """(the file with corrected cells, the notices, whether a column has the day first, for those with slashes).
    `day_first`: of a delta; None: the file is in bulk."""
    tolerances = list(_list_tolerances(file, day_first))
    found, clashes = _find_tolerated(connection, file, tolerances)
    early = [cell_tolerance for cell_tolerance in found if cell_tolerance.tolerance.early]
    if early:
        file = _rewrite(connection, file, early, "prepared")
        later = [(cell, tolerance) for cell, tolerance in tolerances if not tolerance.early]
        found, clashes = _find_tolerated(connection, file, later)
    if any(cell_tolerance.tolerance.read is not None for cell_tolerance in found):
        file = _rewrite(connection, file, found, "normalized")
    name = file.file.file_name
    said = (cell_tolerance for cell_tolerance in (*early, *found) if not cell_tolerance.tolerance.usual)
    notices = [Tolerated(name, each.tolerance.deviation, each.cell.header, each.count, line=each.line) for each in said]
    orders = {
        name_column(file.file, cell_tolerance.cell): ORDERS[cell_tolerance.tolerance.deviation]
        for cell_tolerance in found
        if cell_tolerance.tolerance.deviation in ORDERS
    }
    return (
        file,
        [*notices, *(f"{name}, column {clash.cell.header}: {clash.tolerance.clash}" for clash in clashes)],
        orders,
    )


@dataclass(frozen=True)
class _Found:
    """A deviation of the cells of a column, the number of rows that have it, and the first of their lines, where a
    notice says it."""

    cell: Cell
    tolerance: Tolerance
    count: int
    line: int | None = None


def _find_tolerated(
    connection: sa.Connection, file: StagedFile, tolerances: list[tuple[Cell, Tolerance]]
) -> tuple[list[_Found], list[_Found]]:
    """(the deviations of the cells, those that are not read because their columns contradict themselves)."""
    if not tolerances or file.is_known:
        return [], []
    counted, asked = _make_count(file, tuple(tolerances))
    counts: dict[int, list[int]] = {}
    for place, count in zip(asked, connection.execute(counted).one(), strict=True):
        counts.setdefault(place, []).append(count)
    found, clashes = list[_Found](), list[_Found]()
    for place, (cell, tolerance) in enumerate(tolerances):
        count, *others = counts[place]
        is_needed = tolerance.needs is None or others.pop(0) > 0
        is_excluded = tolerance.excluded_by is not None and others.pop(0) > 0
        if count and is_needed:
            (clashes if is_excluded else found).append(_Found(cell, tolerance, count))
    return _find_lines(connection, file, found), [clash for clash in clashes if clash.tolerance.clash]


def _find_lines(connection: sa.Connection, file: StagedFile, found: list[_Found]) -> list[_Found]:
    reported = [each for each in found if not each.tolerance.usual]
    if not reported:
        return found
    first = (sa.func.min(file.line).filter(each.tolerance.holds(file[each.cell.header])) for each in reported)
    lines = iter(connection.execute(sa.select(*first).select_from(file.table)).one())
    return [each if each.tolerance.usual else replace(each, line=next(lines)) for each in found]


@functools.lru_cache(STATEMENT_CACHE_SIZE)
def _make_count(
    file: StagedFile, tolerances: tuple[tuple[Cell, Tolerance], ...]
) -> tuple[sa.Select[*tuple[Any, ...]], tuple[int, ...]]:
    """(the SELECT that counts the rows of each condition of the tolerances, the place of the tolerance of each)."""
    asked = [
        (place, condition(file[cell.header]))
        for place, (cell, tolerance) in enumerate(tolerances)
        for condition in (tolerance.holds, tolerance.needs, tolerance.excluded_by)
        if condition is not None
    ]
    counted = sa.select(*(sa.func.count().filter(condition) for _, condition in asked)).select_from(file.table)
    return counted, tuple(place for place, _ in asked)


def _list_tolerances(file: StagedFile, day_first: frozenset[str] | None) -> Iterator[tuple[Cell, Tolerance]]:
    for cell in file.file.cells:
        if cell.header == "status":
            yield from ((cell, tolerance) for tolerance in (_BULK_STATUS if day_first is None else _DELTA_STATUS))
        tolerates = cell.kind.tolerates
        if day_first is not None and name_column(file.file, cell) in day_first:
            tolerates = (*SLASHES_AFTER_DAY_FIRST, *(tolerance for tolerance in tolerates if tolerance not in SLASHES))
        yield from ((cell, tolerance) for tolerance in tolerates)


def _rewrite(connection: sa.Connection, file: StagedFile, found: list[_Found], name: str) -> StagedFile:
    table = create_temporary(connection, f"{name}_{file.file.name}", file.columns)
    read = [_normalize_cell(column.name, column, found).label(column.name) for column in file.columns]
    connection.execute(
        table.insert().from_select([column.name for column in read], sa.select(*read).select_from(file.table))
    )
    analyze_temporary(connection, table)
    return replace(file, table=table)


def _normalize_cell(name: str, column: sa.ColumnElement[Any], found: list[_Found]) -> sa.ColumnElement[Any]:
    own = (cell_tolerance.tolerance for cell_tolerance in found if cell_tolerance.cell.header == name)
    whens = [(tolerance.holds(column), tolerance.read(column)) for tolerance in own if tolerance.read is not None]
    return sa.case(*whens, else_=column) if whens else column


def find_days_with_slashes(connection: sa.Connection, staged: Staged) -> list[str]:
    """The names of the files with a day whose order depends on the other rows of its column."""
    found = []
    for name, file in staged.items():
        days = [file[cell.header] for cell in file.file.cells if SLASHES[0] in cell.kind.tolerates]
        if (
            days
            and not file.is_known
            and connection.scalar(
                sa.select(sa.exists(sa.select(file.line).where(sa.or_(*map(may_have_slashes, days)))))
            )
        ):
            found.append(name)
    return found
