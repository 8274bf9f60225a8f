"""The mapping of the words of a feed: words of its SIS, and the words of OneRoster that they mean.

It is a small CSV file of the operator, with the columns file, column, word and means. A cell with a mapped word is read
as the meaning before any other step reads it. Letter case and spaces around a word make no difference.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import sqlalchemy as sa

from roster_service.db.tables import CText, CTexts
from sync_scripts.formats.cells import is_list, map_items, to_list
from sync_scripts.formats.model import Cell, CsvFile, Format
from sync_scripts.formats.tolerated import MAPPED_WORD, SQLText, Tolerance
from sync_scripts.reading.manifest import Contents
from sync_scripts.reading.rejections import Findings, RefusedExportError, Rejection, refuse_if

# The name of the mapping in the reasons for which a run refuses it.
NAME = "the mapping of words"
HEADER = ["file", "column", "word", "means"]


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
        meanings.setdefault((word.file, word.column), {})[word.word.lower()] = word.means
    form = replace(form, files=tuple(_map_file(file, meanings) for file in form.files))
    files, silent = (tuple(form.find_file(file.name) for file in found) for found in (contents.files, contents.silent))
    return form, replace(contents, files=files, silent=silent)


def _find_bad_words(connection: sa.Connection, form: Format, words: list[MappedWord]) -> Iterator[Rejection]:
    files = {_get_name(file): file for file in form.files}
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


def _get_name(file: CsvFile) -> str:
    return file.file_name.removesuffix(".csv")


def _map_file(file: CsvFile, meanings: Mapping[tuple[str, str], Mapping[str, str]]) -> CsvFile:
    words = ((cell, meanings.get((_get_name(file), cell.header))) for cell in file.cells)
    return replace(file, cells=tuple(_map_cell(cell, found) if found else cell for cell, found in words))


def _map_cell(cell: Cell, words: Mapping[str, str]) -> Cell:
    """The cell with one more tolerance, before all others."""

    def read(text: SQLText) -> SQLText:
        meanings = {word: sa.literal(means, CText) for word, means in words.items()}
        return sa.case(meanings, value=sa.func.lower(sa.func.btrim(text)), else_=text)

    def has_mapped_item(text: SQLText) -> sa.ColumnElement[bool]:
        overlaps: sa.ColumnElement[bool] = to_list(sa.func.lower(text)).overlap(sa.literal(list(words), CTexts))
        return overlaps

    if is_list(cell.kind):
        tolerance = Tolerance(MAPPED_WORD, has_mapped_item, lambda text: map_items(text, read), early=True)
    else:
        tolerance = Tolerance(
            MAPPED_WORD, lambda text: sa.func.lower(sa.func.btrim(text)).in_(tuple(words)), read, early=True
        )
    return replace(cell, kind=replace(cell.kind, tolerates=(tolerance, *cell.kind.tolerates)))
