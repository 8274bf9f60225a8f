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

from xxhash import xxh3_64_intdigest

from sync_scripts.cells import UNREAD
from sync_scripts.formats import CsvFile, Format
from sync_scripts.headers import Header
from sync_scripts.sifting import name_nature

# A cell as it is written; the lines were searched before, so every quote in them is at its place.
CELL = rb'(?:"(?:[^"\n]|"")*"|[^",\n]*)'


@dataclass(frozen=True)
class Marker:
    """Marks the lines of one file. `seed`: what the file is and how it is read; `blank`: makes the cells of a block of
    lines empty that have no part in a mark."""

    seed: int
    blank: tuple[Callable[[bytes], bytes], ...]

    @staticmethod
    def of(file: CsvFile, header: Header, form: Format) -> Marker:
        """The marker of a file with this header."""
        nature = name_nature(form, *header.staged, "", *header.metadata_keys)
        seed = int.from_bytes(hashlib.sha256(nature.encode()).digest()[:8])
        silent = {cell.header: cell.kind for cell in file.cells if cell.kind.secret or cell.kind is UNREAD}
        last = len(header.staged) - 1
        return Marker(
            seed,
            tuple(
                _make_blank(number, is_last=number == last, secret=silent[name].secret)
                for number, name in enumerate(header.staged)
                if name in silent
            ),
        )

    def mark(self, block: bytes) -> list[int]:
        """The marks of the lines of a block, each below 2**63."""
        for blank in self.blank:
            block = blank(block)
        lines = block.split(b"\n")
        lines.pop()
        return [mark >> 1 for mark in map(xxh3_64_intdigest, lines, repeat(self.seed))]


def _make_blank(number: int, *, is_last: bool, secret: bool) -> Callable[[bytes], bytes]:
    pattern = re.compile(rb"^((?:%b,){%d})%b" % (CELL, number, CELL), re.MULTILINE)
    filled = re.compile(rb"(?:%b,){%d}[^,\n]" % (CELL, number))

    def blank(block: bytes) -> bytes:
        if secret and is_last:
            empty = block.count(b",\n") == block.count(b"\n")
        else:
            # Who fills a column that is not read fills it in every row; a row that is not like the first one is
            # looked at closely, and no harm is done.
            empty = not secret and filled.match(block) is None
        return block if empty else pattern.sub(rb"\1", block)

    return blank
