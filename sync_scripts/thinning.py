"""Lines on their way into COPY, each with its mark; of a file that came before, only the lines that are new.

What the last export said in the same words is neither sent to the database nor taken apart there: its records stand as
they are, and `sifting` asks for the whole file where that would not do.
"""

from __future__ import annotations

import io
from array import array
from collections.abc import Sequence
from typing import BinaryIO, Protocol

from sync_scripts.aligning import CODE, WIDTH, Alignment
from sync_scripts.marks import Marker
from sync_scripts.outcasts import HEADER_LINES

# Bytes of a signed 64-bit number, and the end of its line.
LONGEST_NUMBER = 21
# Of the lines, the share that may come and go for the rest to be left out; of a few, all may.
MOST_SHARE = 0.25
LEAST = 1000


class Lines(Protocol):
    """Whole lines of cells, in blocks."""

    def read(self, size: int) -> bytes:
        """The next lines, at most `size` bytes of them; empty at the end."""


class MarkedLines:
    """All lines, each with its mark as one more cell."""

    def __init__(self, lines: Lines, marker: Marker, marks: BinaryIO) -> None:
        """`marks`: takes the marks of all lines, as `Alignment` reads them."""
        self._lines = lines
        self._marker = marker
        self._marks = marks

    def read(self, size: int) -> bytes:
        """The next lines; `size` counts the bytes without marks."""
        block = self._lines.read(size)
        rows, marks = self._marker.mark(block)
        self._marks.write(array(CODE, marks).tobytes())
        # The numbers are spelt all at once: a block has thousands.
        spelt = str(marks).encode()[1:-1].split(b", ")
        return b"%b\n" % b"\n".join(map(b",".join, zip(rows, spelt, strict=True))) if rows else b""


def thin_out(
    lines: Lines, marker: Marker, old: BinaryIO, marks: BinaryIO, new: BinaryIO, block_bytes: int
) -> array[int]:
    """Writes those of the lines that are new into `new`, each with its mark and the number of its line in the file as
    two more cells. `old`: the marks of the last time; `marks` takes those of now. Returns the marks that are gone.

    Raises TooDifferentError where it is better to take the whole file.
    """
    count = old.seek(0, io.SEEK_END) // WIDTH
    old.seek(0)
    alignment = Alignment(old, LEAST + int(count * MOST_SHARE))
    first = HEADER_LINES + 1
    while block := lines.read(block_bytes):
        rows, found = marker.mark(block)
        marks.write(array(CODE, found).tobytes())
        places = alignment.find_new(found)
        new.writelines(b"%b,%d,%d\n" % (rows[place], found[place], first + place) for place in places)
        first += len(found)
    alignment.end()
    return alignment.gone


class Numbers:
    """Numbers as the lines of a file, made while they are read: there may be millions."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self._numbers = numbers
        self._at = 0

    def read(self, size: int) -> bytes:
        """The next lines, at most `size` bytes of them."""
        part = self._numbers[self._at : self._at + max(size // LONGEST_NUMBER, 1)]
        self._at += len(part)
        return b"".join([b"%d\n" % number for number in part])
