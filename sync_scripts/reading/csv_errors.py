"""The faults in the lines of a CSV file: the slow reading, for files at which `lines.py` or COPY stopped.

Every line is one row; a quoted cell must not continue on the next line. One fault is common and harmless, and
`MendedLines` corrects it: empty cells beyond the last column, where an exporter wrote a comma too many.
"""

from __future__ import annotations

import codecs
import itertools
import re
from collections.abc import Iterator, Sequence

from sync_scripts.reading.lines import LONGEST_LINE, ByteStream
from sync_scripts.reading.rejections import Rejection

# One cell and the comma or the end behind it.
CELL = re.compile(rb'(?:"((?:[^"]|"")*+)"|([^",]*+))(,|\Z)')
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def find_faults(stream: ByteStream, file_name: str, columns: Sequence[str]) -> Iterator[Rejection]:
    """Reads a CSV file from its start and yields the faults of its rows. `columns`: all headers of the file."""
    # An empty line is a fault only if a line with content follows it; empty lines at the end of the file are not.
    empty: list[int] = []
    for number, line in _read_lines(stream):
        if len(line) > LONGEST_LINE:
            yield Rejection(file_name, f"the line is longer than {LONGEST_LINE} bytes", number)
            return
        if not line:
            empty.append(number)
            continue
        yield from (Rejection(file_name, "the line is empty", blank) for blank in empty)
        empty.clear()
        if number > 1:
            yield from find_line_faults(line, file_name, number, columns)


def _read_lines(stream: ByteStream) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := stream.readline(LONGEST_LINE + 2):
        number += 1
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        yield number, line.removesuffix(b"\n").removesuffix(b"\r")


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
            broken = "holds a control character" if CONTROL.search(cell.decode()) else None
        except UnicodeDecodeError:
            broken = "is not UTF-8"
        if broken:
            yield Rejection(file_name, broken, number, name_column(index))
    if columns is not None and len(cells) != len(columns) and not _is_mendable(cells, len(columns)):
        yield Rejection(file_name, f"the row has {len(cells)} cells, not {len(columns)}", number)


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


def _is_mendable(cells: list[bytes], width: int) -> bool:
    return len(cells) > width and not any(cells[width:])


class MendedLines:
    """The rows of a CSV file without faults, as a file that COPY can read: without the header, and without empty cells
    beyond column number `width`. `mended` counts the rows that had such cells."""

    def __init__(self, stream: ByteStream, width: int) -> None:
        self._lines = itertools.islice(_read_lines(stream), 1, None)
        self._width = width
        self._rest = b""
        self.mended = 0

    def read(self, size: int) -> bytes:
        """Reads the next whole lines, at most `size` bytes; returns no bytes at the end."""
        block, self._rest = [self._rest], b""
        length = len(block[0])
        for _, line in self._lines:
            if not line:
                continue
            row = self._mend(line) + b"\n"
            if length + len(row) > size:
                self._rest = row
                break
            block.append(row)
            length += len(row)
        return b"".join(block)

    def _mend(self, line: bytes) -> bytes:
        for number, match in enumerate(_scan(line), 1):
            if number == self._width and match[3]:
                self.mended += 1
                return line[: match.start(3)]
        return line
