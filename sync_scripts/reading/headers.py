"""Reads the first line of a CSV file and compares it with the columns that its format declares."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from sync_scripts.formats import tolerated
from sync_scripts.formats.model import EXTRA_PREFIX, CsvFile, name_extra_column, name_metadata_column
from sync_scripts.formats.tolerated import Deviation, Notice, Tolerated
from sync_scripts.reading.lines import decode_cell
from sync_scripts.reading.rejections import Findings, Rejection, cut_value
from sync_scripts.reading.repair import find_line_faults, split_line

# A row of a table of PostgreSQL has at most 8,160 bytes, and up to 24 of them for each cell that is not blank; exports
# have far fewer columns.
MOST_COLUMNS = 300
MOST_METADATA_COLUMNS = 200
KEY_LENGTH = 100
SEPARATED = "the columns are separated by {}; separate them by commas"
SEPARATORS = {b";": "semicolons", b"\t": "tabs", b"|": "vertical bars"}
# Files of other kinds under the name of a CSV file: (what they begin with, the reason with the remedy).
OTHER_KINDS = (
    (re.compile(rb"PK\x03\x04"), "is an Excel workbook or another zip; save or unpack it as CSV"),
    (re.compile(rb"\xd0\xcf\x11\xe0"), "is an Excel workbook; save it as CSV"),
    (re.compile(rb"\x1f\x8b"), "is packed by gzip; unpack it"),
    (re.compile(rb"%PDF-"), "is a PDF; export it as CSV"),
    (re.compile(rb"\s*<(!doctype|html|\?xml)", re.IGNORECASE), "is a page of HTML or XML, perhaps of an error"),
)
# How much alike an unknown header and a missing one must be, from 0 to 1.
LIKENESS = 0.75


@dataclass(frozen=True)
class Header:
    """The columns of a file, in the order of the file. `written`: the headers of the file; `staged`: the names of the
    staged columns; `metadata_keys`: the keys of the metadata columns; `notices`: the tolerated deviations."""

    written: tuple[str, ...] = ()
    staged: tuple[str, ...] = ()
    metadata_keys: tuple[str, ...] = ()
    notices: tuple[Notice, ...] = ()

    @property
    def extra(self) -> tuple[str, ...]:
        """The staged columns that the sync does not read."""
        return tuple(name for name in self.staged if name.startswith(EXTRA_PREFIX))


@dataclass(frozen=True)
class _Column:
    """`meant`: the declared header that this one means; the same text where no declared header matches."""

    written: str
    meant: str
    deviation: Deviation | None = None


def read_header(line: bytes, file: CsvFile) -> tuple[Header, Findings]:
    """(header, findings) of a header line. Without findings the header has every column that the file must have."""
    name = file.file_name
    if not line:
        return Header(), Findings.of([Rejection(name, "is empty; the first line names the columns", 1)])
    for pattern, reason in OTHER_KINDS:
        if pattern.match(line):
            return Header(), Findings.of([Rejection(name, reason)])
    if separator := find_separator(line, file.headers):
        return Header(), Findings.of([Rejection(name, SEPARATED.format(separator), 1)])
    cells = split_line(line)
    faults = Findings.of(find_line_faults(line, name, 1, None))
    if cells is None or faults:
        return Header(), faults
    columns = [_recognize(decode_cell(cell), file) for cell in cells]
    findings = Findings.of(_find_bad_headers(columns, file))
    keys = tuple(column.meant.removeprefix(file.own_prefix) for column in columns if _is_own(column.meant, file))
    written = tuple(column.written for column in columns)
    return Header(written, tuple(_name_staged(columns, file)), keys, tuple(_list_deviations(columns, file))), findings


def find_separator(line: bytes, headers: Iterable[str]) -> str | None:
    """What stands between the columns of a file in place of commas, in words. `headers`: those of the file."""
    declared = {header.lower() for header in headers}
    for mark, words in SEPARATORS.items():
        parts = {part.strip(b' "').decode(errors="replace").lower() for part in line.split(mark)}
        if len(parts & declared) > 1:
            return words
    return None


def _name_staged(columns: list[_Column], file: CsvFile) -> Iterator[str]:
    metadata_numbers = itertools.count()
    for number, column in enumerate(columns, 1):
        if column.meant in file.headers:
            yield column.meant
        elif _is_own(column.meant, file):
            yield name_metadata_column(next(metadata_numbers))
        else:
            yield name_extra_column(number)


def _list_deviations(columns: list[_Column], file: CsvFile) -> Iterator[Notice]:
    """The deviations of the columns, each and as a whole. They are reported only for a header with every required
    column, so no name here is a cell of a file without a header."""
    known = [column.meant for column in columns if column.meant in file.headers]
    for column in columns:
        if column.deviation is not None:
            found = f"{column.written}, read as {column.meant}"
            yield Tolerated(file.file_name, column.deviation, found=found)
    extra = [
        cut_value(column.written.strip()) or f"column {number}"
        for number, column in enumerate(columns, 1)
        if column.meant not in file.headers and not _is_own(column.meant, file)
    ]
    if extra:
        yield Tolerated(file.file_name, tolerated.EXTRA_COLUMN, found=", ".join(extra))
    if not file.is_source:
        # The standard leaves columns of metadata to the exporter: one may be missing, and stands anywhere.
        standard = [header for header in file.headers if not header.startswith(file.own_prefix)]
        for header in standard:
            if header not in known:
                yield Tolerated(file.file_name, tolerated.MISSING_COLUMN, header)
        if [header for header in known if header in standard] != [header for header in standard if header in known]:
            yield Tolerated(file.file_name, tolerated.COLUMN_ORDER)


def _recognize(written: str, file: CsvFile) -> _Column:
    declared = {header.lower(): header for header in file.headers}
    if written in file.headers or _is_own(written, file):
        return _Column(written, written)
    if (stripped := written.strip()) in file.headers:
        return _Column(written, stripped, tolerated.HEADER_SPACES)
    low = stripped.lower()
    if low in declared:
        return _Column(written, declared[low], tolerated.HEADER_CASE)
    meant = tolerated.HEADER_SPELLINGS.get(low)
    if meant in file.headers:
        return _Column(written, str(meant), tolerated.HEADER_SPELLING)
    return _Column(written, written)


def _find_bad_headers(columns: list[_Column], file: CsvFile) -> Iterator[Rejection]:
    declared = file.headers

    def reject(number: int, column: _Column, reason: str) -> Rejection:
        # The number replaces an unknown header: the first line of a file without a header is a row with personal data.
        name = column.written if column.meant in declared else str(number)
        return Rejection(file.file_name, reason, 1, name, column.written)

    if len(columns) > MOST_COLUMNS:
        yield Rejection(file.file_name, f"has more than {MOST_COLUMNS} columns", 1)
        return
    if sum(_is_own(column.meant, file) for column in columns) > MOST_METADATA_COLUMNS:
        yield Rejection(file.file_name, f"has more than {MOST_METADATA_COLUMNS} metadata columns", 1)
    seen: set[str] = set()
    for number, column in enumerate(columns, 1):
        is_read = column.meant in declared or _is_own(column.meant, file)
        if column.meant in seen and is_read:
            yield reject(number, column, "stands in the header twice")
        seen.add(column.meant)
    missing = [cell.header for cell in file.cells if cell.header not in seen and cell.required]
    if not missing:
        return
    for header in missing:
        yield Rejection(file.file_name, "is missing in the header", 1, header)
    unknown = {
        number: column
        for number, column in enumerate(columns, 1)
        if column.meant not in declared and not _is_own(column.meant, file)
    }
    hints = dict(_pair_alike(unknown, missing))
    for number, column in unknown.items():
        hint = f"; did you mean {hints[number]}?" if number in hints else ""
        yield reject(number, column, f"is no column of this file{hint}")


def _pair_alike(unknown: Mapping[int, _Column], missing: list[str]) -> Iterator[tuple[int, str]]:
    """(number of an unknown column, missing header that it may be): each header at most once, the most alike first."""

    def simplify(header: str) -> str:
        return "".join(filter(str.isalnum, header.lower()))

    pairs = [
        (difflib.SequenceMatcher(None, simplify(column.written), simplify(header)).ratio(), number, header)
        for number, column in unknown.items()
        for header in missing
    ]
    numbers, headers = set[int](), set[str]()
    for likeness, number, header in sorted(pairs, key=lambda pair: -pair[0]):
        if likeness >= LIKENESS and number not in numbers and header not in headers:
            numbers.add(number)
            headers.add(header)
            yield number, header


def _is_own(header: str, file: CsvFile) -> bool:
    """Whether a column is one of the exporter's own, which becomes metadata. A declared header may begin like one."""
    key = header.removeprefix(file.own_prefix)
    return header not in file.headers and header != key and 0 < len(key) <= KEY_LENGTH and key == key.strip()
