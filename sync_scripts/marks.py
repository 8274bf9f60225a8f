"""The mark of a line: a number by which it is known the next night, whatever its place in the file.

Two lines with the same mark say the same of everything that is read. What is not read has no part in it: the cells of
columns that no load looks at, and secrets, of which nothing may be kept, not even a hash.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import repeat
from typing import NamedTuple

from xxhash import xxh3_64_intdigest

from sync_scripts.cells import UNREAD
from sync_scripts.formats import CsvFile, Format
from sync_scripts.headers import Header
from sync_scripts.sifting import name_nature

# A cell as it is written; the lines were searched before, so every quote in them is at its place.
CELL = rb'(?:"(?:[^"\n]|"")*"|[^",\n]*)'

# A block of lines, and the same lines one by one -> the block with some cells empty.
Blank = Callable[[bytes, list[bytes]], bytes]


class Marked(NamedTuple):
    """Lines, their marks, each below 2**63, and whether a secret stands in any of them."""

    lines: list[bytes]
    marks: list[int]
    has_secrets: bool


@dataclass(frozen=True)
class Marker:
    """Marks the lines of one file. `seed`: what the file is and how it is read; `blank_secrets` and `blank_unread`
    make the cells of a block of lines empty that have no part in a mark."""

    seed: int
    blank_secrets: tuple[Blank, ...]
    blank_unread: tuple[Blank, ...]

    @staticmethod
    def of(file: CsvFile, header: Header, form: Format) -> Marker:
        """The marker of a file with this header."""
        nature = name_nature(form, *header.staged, "", *header.metadata_keys)
        seed = int.from_bytes(hashlib.sha256(nature.encode()).digest()[:8])
        silent = {cell.header: cell.kind for cell in file.cells if cell.kind.secret or cell.kind is UNREAD}
        blank: dict[bool, list[Blank]] = {True: [], False: []}
        for number, name in enumerate(header.staged):
            if name in silent:
                secret = silent[name].secret
                blank[secret].append(_make_blank(number, len(header.staged), secret=secret))
        return Marker(seed, tuple(blank[True]), tuple(blank[False]))

    def mark(self, block: bytes) -> Marked:
        """The lines of a block, with their marks."""
        lines = _split(block)
        open_told = _empty(self.blank_secrets, block, lines)
        told = _empty(self.blank_unread, open_told, lines)
        marked = lines if told is block else _split(told)
        marks = [mark >> 1 for mark in map(xxh3_64_intdigest, marked, repeat(self.seed))]
        return Marked(lines, marks, open_told is not block)


def _empty(blank: tuple[Blank, ...], block: bytes, lines: list[bytes]) -> bytes:
    for make_empty in blank:
        block = make_empty(block, lines)
    return block


def _split(block: bytes) -> list[bytes]:
    lines = block.split(b"\n")
    # Behind the last line end there is nothing.
    lines.pop()
    return lines


def _make_blank(number: int, width: int, *, secret: bool) -> Blank:
    """What empties the cells of the column with this number, counted from 0, in lines of `width` cells."""
    cells = re.compile(rb"^((?:%b,){%d})%b" % (CELL, number, CELL), re.MULTILINE)
    filled = re.compile(rb"^(?:%b,){%d}[^,\n]" % (CELL, number), re.MULTILINE)
    behind = width - number

    def is_filled(line: bytes) -> bool:
        # Cells are counted from the end, where nearly no line has quotes: without them, every comma ends a cell. A line
        # that has more or fewer cells leaves no mark behind.
        last = line.rsplit(b",", behind)
        if b'"' in line[len(last[0]) :]:
            return filled.match(line) is not None
        return len(last) <= behind or last[1] != b""

    def is_empty(block: bytes, lines: list[bytes]) -> bool:
        if not secret:
            # Who fills a column that is not read fills it in every row; a row that is not like the first one is
            # looked at closely, and no harm is done.
            return filled.match(block) is None
        return not any(map(is_filled, lines))

    return lambda block, lines: block if is_empty(block, lines) else cells.sub(rb"\1", block)
