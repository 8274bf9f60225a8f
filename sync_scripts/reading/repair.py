"""The errors of CSV, and their repair where it is safe.

It corrects mistakes that exporters make and that leave no doubt: a line of Windows-1252, empty lines, line breaks
inside quoted cells, empty cells beyond the last column. Any other row with too few or too many cells is marked with its
fault, so that the checks reject it alone. Broken quoting and control characters it does not repair.
"""

from __future__ import annotations

import codecs
import contextlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from sync_scripts.formats.model import FAULT
from sync_scripts.formats.tolerated import BLANK_LINE, EXTRA_CELLS, QUOTED_NEWLINE, WINDOWS_1252, Deviation
from sync_scripts.reading.lines import LONGEST_LINE, UTF_8, ByteStream, SuspectBytesError, decode_cell
from sync_scripts.reading.rejections import Rejection
from sync_scripts.reading.surplus_cells import ColumnShapes

# One cell and the comma or the end behind it.
CELL = re.compile(rb'(?:"((?:[^"]|"")*+)"|([^",]*+))(,|\Z)')
CUT = "the file ends inside this row: it was cut off, or is still being written"
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def find_faults(stream: ByteStream, file_name: str, columns: Sequence[str]) -> Iterator[Rejection]:
    """Reads a CSV file from its start and yields the faults of its rows. `columns`: all headers of the file."""
    for number, line, is_cut in _read_lines(stream):
        if len(line) > LONGEST_LINE:
            yield Rejection(file_name, f"the line is longer than {LONGEST_LINE} bytes", number)
            return
        if is_cut and number > 1 and is_cut_inside(line, len(columns)):
            yield Rejection(file_name, CUT, number)
        elif line and number > 1:
            yield from find_line_faults(line, file_name, number, columns)


def is_cut_inside(line: bytes, width: int) -> bool:
    """Whether the last line of a file, which has no line end, ends before its row does: inside a quoted cell, or with
    too few cells. `width`: the number of columns."""
    cells = split_line(line)
    return bool(line) and (cells is None or len(cells) < width)


def _read_lines(stream: ByteStream) -> Iterator[tuple[int, bytes, bool]]:
    """(number, line without its end, whether it has no end) of every line."""
    number = 0
    while line := stream.readline(LONGEST_LINE + 2):
        number += 1
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        yield number, line.removesuffix(b"\n").removesuffix(b"\r"), not line.endswith((b"\n", b"\r"))


def find_line_faults(line: bytes, file_name: str, number: int, columns: Sequence[str] | None) -> Iterator[Rejection]:
    """Yields the faults of one line, given without its line end. `columns`: all headers; None: the line is the
    header."""

    def name_column(index: int) -> str | None:
        return columns[index] if columns is not None and index < len(columns) else None

    cells = split_line(line)
    if cells is None:
        reason = "broken quoting: a quote is not closed in its line, or stands in a bare cell"
        yield Rejection(file_name, reason, number, name_column(sum(1 for _ in _scan(line))))
        return
    # No fault names a value: the values are broken, and one of them may be a password.
    for index, cell in enumerate(cells):
        try:
            broken = "holds a control character" if CONTROL.search(decode_cell(cell)) else None
        except UnicodeDecodeError:
            broken = "is neither UTF-8 nor Windows-1252"
        if broken:
            yield Rejection(file_name, broken, number, name_column(index))


def split_line(line: bytes) -> list[bytes] | None:
    """The unquoted cells of a line; None where its quoting is broken."""
    cells = []
    for match in _scan(line):
        cells.append(match[2] if match[1] is None else match[1].replace(b'""', b'"'))
        if not match[3]:
            return cells
    return None


def _scan(line: bytes) -> Iterator[re.Match[bytes]]:
    start = 0
    while match := CELL.match(line, start):
        yield match
        if not match[3]:
            return
        start = match.end()


NEEDS_QUOTES = (b'"', b",")


class RepairedLines:
    """The rows of a CSV file, as `CleanLines` has them, but for one more cell in each row: its fault (empty: none).
    `shapes`: of `find_shapes`. `read` raises SuspectBytesError for rows that cannot be repaired."""

    added = (FAULT,)

    def __init__(self, stream: ByteStream, width: int, shapes: ColumnShapes) -> None:
        self._width = width
        self._shapes = shapes
        self._rows = self._read_rows(stream)
        self._waiting: tuple[int, bytes] | None = None
        self.numbers: Sequence[int] | None = None
        self.repairs: Counter[Deviation] = Counter()
        self.faults = 0

    def read(self, size: int) -> bytes:
        """Reads the next whole rows, at most `size` bytes; returns no bytes at the end."""
        block, numbers, length = list[bytes](), list[int](), 0
        while (row := self._waiting or next(self._rows, None)) is not None:
            self._waiting = None
            if block and length + len(row[1]) > size:
                self._waiting = row
                break
            block.append(row[1])
            numbers.append(row[0])
            length += len(row[1])
        self.numbers = numbers
        return b"".join(block)

    def _read_rows(self, stream: ByteStream) -> Iterator[tuple[int, bytes]]:
        """(number of the first line, row) of every row."""
        blank = 0
        for number, line in _read_logical_lines(stream):
            if not line.strip(b"\r\n"):
                blank += 1
                continue
            if number > 1:
                # Empty lines at the end of a file are none between rows.
                self.repairs[BLANK_LINE] += blank
                yield number, self._repair(line)
            blank = 0

    def _repair(self, line: bytes) -> bytes:
        if not line.endswith((b"\r", b"\n")) and is_cut_inside(line, self._width):
            raise SuspectBytesError
        line = line.rstrip(b"\r\n")
        if b"\n" in line or b"\r" in line:
            self.repairs[QUOTED_NEWLINE] += 1
            line = b" ".join(line.splitlines())
        line = self._to_utf_8(line)
        cells = split_line(line)
        if cells is None:
            raise SuspectBytesError
        if len(cells) == self._width:
            return line + b",\n"
        fault, more = "", len(cells) - self._width
        if more > 0 and not any(cells[self._width :]) and self._shapes.is_whole(cells):
            self.repairs[EXTRA_CELLS] += 1
        else:
            self.faults += 1
            remedy = "; a cell with a comma needs quotes" if more > 0 else ""
            fault = f"the row has {len(cells)} cells, not {self._width}{remedy}"
        cells = [*cells[: self._width], *([b""] * (self._width - len(cells))), fault.encode()]
        return b",".join(map(_quote, cells)) + b"\n"

    def _to_utf_8(self, line: bytes) -> bytes:
        # Each line by itself: one bad character does not make another encoding of all the others.
        try:
            text = decode_cell(line)
        except UnicodeDecodeError:
            raise SuspectBytesError from None
        if CONTROL.search(text):
            raise SuspectBytesError
        plain = text.encode(UTF_8)
        self.repairs[WINDOWS_1252] += plain != line
        return plain


def find_shapes(stream: ByteStream, width: int) -> ColumnShapes:
    """What the rows of a file have in each column, up to the first row that cannot be read."""
    shapes = ColumnShapes(width)
    with contextlib.suppress(SuspectBytesError):
        for number, line in _read_logical_lines(stream):
            row = line.rstrip(b"\r\n")
            if number == 1 or not row:
                continue
            if shapes.has_enough:
                break
            cells = row.split(b",") if b'"' not in row else split_line(row) or ()
            if len(cells) >= width:
                shapes.add(cells)
    return shapes


def _read_logical_lines(stream: ByteStream) -> Iterator[tuple[int, bytes]]:
    """(number, line) of every line; a line with an open quote continues on the next one."""
    number, start, parts, length, quotes = 0, 1, list[bytes](), 0, 0
    while line := stream.readline(LONGEST_LINE + 2):
        number += 1
        parts.append(line)
        length += len(line)
        quotes += line.count(b'"')
        if length > LONGEST_LINE:
            raise SuspectBytesError
        if quotes % 2 == 0:
            yield start, b"".join(parts)
            start, parts, length, quotes = number + 1, [], 0, 0
    if parts:
        raise SuspectBytesError


def _quote(cell: bytes) -> bytes:
    if any(mark in cell for mark in NEEDS_QUOTES):
        return b'"' + cell.replace(b'"', b'""') + b'"'
    return cell
