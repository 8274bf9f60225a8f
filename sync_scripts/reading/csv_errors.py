"""The faults in the lines of a CSV file for which the sync refuses it, each with its line: for files that `repair.py`
could not read."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence

from sync_scripts.reading.encodings import decode_cell
from sync_scripts.reading.lines import LONGEST_LINE, ByteStream
from sync_scripts.reading.rejections import Rejection

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
