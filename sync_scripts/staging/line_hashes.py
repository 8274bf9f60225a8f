"""The hash of each line of an export: a line that the last export had too is not staged again.

A record has as its fingerprint the hash of the line that it was made of, so the fingerprints of a table are the hashes
of the lines that the last export had. Two lines with the same hash say the same of everything that is read. What is
not read has no part in it: the cells of columns that no load looks at, and secrets, of which nothing may be kept, not
even a hash.

A hash has 63 bits. A changed line is looked for among the lines of its own file: among a million of them, one changed
line in 9,000,000,000,000 has the hash of another one. Where that other line is still in the file, no hash is left for
it, so it is staged, and both are looked at (see `row_fingerprints`).
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Protocol

from sqlalchemy import Connection, LargeBinary, Table, func, literal, select
from xxhash import xxh3_64_intdigest

from sync_scripts.formats.cells import UNREAD
from sync_scripts.formats.model import CsvFile, Format
from sync_scripts.reading.headers import Header
from sync_scripts.staging.retained import is_active

# Goes up when a check or a conversion changes: every row is then looked at once more.
RULES = 3
# A cell as it is written; the lines were searched before, so every quote in them is at its place.
CELL = rb'(?:"(?:[^"\n]|"")*"|[^",\n]*)'
HEADER_LINES = 1
HASH_BYTES = 8

# A block of lines, and the same lines one by one -> the block with some cells empty.
Blank = Callable[[bytes, list[bytes]], bytes]


class Lines(Protocol):
    """Whole lines of cells, in blocks."""

    def read(self, size: int, /) -> bytes:
        """The next lines, at most `size` bytes of them; empty at the end."""


@dataclass(frozen=True)
class LineHasher:
    """Hashes the lines of one file. `seed`: what the file is and how it is read; `blank`: makes the cells of a block of
    lines empty that have no part in a hash."""

    seed: int
    blank: tuple[Blank, ...]

    @staticmethod
    def of(file: CsvFile, header: Header, form: Format) -> LineHasher:
        """The hasher of a file with this header. `RULES` and the format are part of every hash."""
        described = "\n".join((str(RULES), form.name, *header.staged, "", *header.metadata_keys))
        seed = int.from_bytes(hashlib.sha256(described.encode()).digest()[:8])
        silent = {cell.header: cell.kind for cell in file.cells if cell.kind.secret or cell.kind is UNREAD}
        width = len(header.staged)
        blank = (
            _make_blank(number, width, secret=silent[name].secret)
            for number, name in enumerate(header.staged)
            if name in silent
        )
        return LineHasher(seed, tuple(blank))

    def hash(self, block: bytes) -> tuple[list[bytes], list[int]]:
        """(the lines of a block, their hashes)."""
        lines = _split(block)
        described = block
        for make_empty in self.blank:
            described = make_empty(described, lines)
        hashed = lines if described is block else _split(described)
        # One bit less, so that they are positive as signed numbers of 64 bits too.
        return lines, [number >> 1 for number in map(xxh3_64_intdigest, hashed, repeat(self.seed))]


class NewLines:
    """The lines of a file whose hashes are not among the `known` ones, each with its hash and the number of its line in
    the file as two more cells. What is left in `known` at the end are the hashes of lines that are gone; a line that
    comes a second time is new. `rows` counts all lines."""

    def __init__(self, lines: Lines, hasher: LineHasher, known: set[int]) -> None:
        self._lines = lines
        self._hasher = hasher
        self._known = known
        self.rows = 0

    def read(self, size: int) -> bytes:
        """The next new lines; `size` counts the bytes without hashes and numbers."""
        known = self._known
        while block := self._lines.read(size):
            lines, hashes = self._hasher.hash(block)
            first = self.rows + HEADER_LINES + 1
            self.rows += len(lines)
            new = []
            for place, number in enumerate(hashes):
                if number in known:
                    known.remove(number)
                else:
                    new.append(b"%b,%d,%d\n" % (lines[place], number, first + place))
            if new:
                return b"".join(new)
        return b""


@dataclass(frozen=True)
class LastLines:
    """The lines that the last export of a feed had. `trusted`: whether the fingerprints of the feed tell them; else
    every line is staged. `again`: by table, the hashes of lines that are staged although they are the same."""

    feed_id: int
    trusted: bool
    restaged: Mapping[Table, Collection[int]] = field(default_factory=dict)

    def find_table(self, file: CsvFile) -> Table | None:
        """The table whose fingerprints are the hashes of the file's lines; None: all lines of the file are staged."""
        return file.table if self.trusted and file.is_plain else None

    def fetch_hashes(self, connection: Connection, file: CsvFile) -> set[int]:
        """The hashes of the lines of a file that need not be staged."""
        table = self.find_table(file)
        if table is None:
            return set()
        packed = func.string_agg(func.int8send(table.c.fingerprint), literal(b""), type_=LargeBinary)
        found = connection.scalar(select(packed).where(is_active(table, self.feed_id))) or b""
        hashes = set(struct.unpack(f">{len(found) // HASH_BYTES}q", found))
        hashes.difference_update(self.restaged.get(table, ()))
        return hashes

    def add_restaged(self, more: Mapping[Table, Collection[int]]) -> LastLines:
        """The same, with more lines that are staged again."""
        restaged = {table: {*self.restaged.get(table, ()), *more.get(table, ())} for table in {*self.restaged, *more}}
        return replace(self, restaged=restaged)


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
        # Cells are counted from the end, where nearly no line has quotes: without them, every comma ends a cell. The
        # hash of a line that has more or fewer cells is not kept.
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
