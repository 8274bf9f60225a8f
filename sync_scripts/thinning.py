"""Lines on their way into COPY, each with its mark; of a file that came before, only the lines that are new.

What the last export said in the same words is neither sent to the database nor taken apart there: its records stand as
they are, and `sifting` asks for the whole file where that would not do.
"""

from __future__ import annotations

import io
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from sync_scripts.aligning import CODE, WIDTH, Alignment
from sync_scripts.lines import CleanLines
from sync_scripts.marks import Marker
from sync_scripts.outcasts import HEADER_LINES
from sync_scripts.spans import UNKNOWN, FreshSpans, KnownSpans, cut_spans, hash_span

# Bytes of a signed 64-bit number, and the end of its line.
LONGEST_NUMBER = 21
# Of the lines, the share that may come and go for the rest to be left out; of a few, all may.
MOST_SHARE = 0.25
LEAST = 1000


class Lines(Protocol):
    """Whole lines of cells, in blocks."""

    def read(self, size: int) -> bytes:
        """The next lines, at most `size` bytes of them; empty at the end."""


@dataclass(frozen=True)
class LineMarks:
    """What is known of the lines of a file: their marks in their order, as `Alignment` reads them, and their spans."""

    marks: BinaryIO
    spans: array[int]


class MarkedLines:
    """All lines, each with its mark as one more cell."""

    def __init__(self, lines: CleanLines, marker: Marker, found: LineMarks) -> None:
        """`found`: takes what is known of the lines."""
        self._lines = lines
        self._marker = marker
        self._found = found

    def read(self, size: int) -> bytes:
        """The next lines; `size` counts the bytes without marks."""
        block = self._lines.read(size)
        rows, marks, has_secrets = self._marker.mark(block)
        self._found.marks.write(array(CODE, marks).tobytes())
        self._found.spans.extend(cut_spans(rows, self._lines.raw, self._marker.seed, has_secrets=has_secrets))
        # The numbers are spelt all at once: a block has thousands.
        spelt = str(marks).encode()[1:-1].split(b", ")
        return b"%b\n" % b"\n".join(map(b",".join, zip(rows, spelt, strict=True))) if rows else b""


def thin_out(
    lines: CleanLines, marker: Marker, old: LineMarks, found: LineMarks, new: BinaryIO, block_bytes: int
) -> array[int]:
    """Writes those of the lines that are new into `new`, each with its mark and the number of its line in the file as
    two more cells. `old`: what was known the last time; `found` takes what is known now. Returns the marks that are
    gone.

    Raises TooDifferentError where it is better to take the whole file.
    """
    walk = _Walk(lines, marker, old, found, new)
    while walk.pass_over() or walk.read(block_bytes):
        pass
    return walk.end()


class _Walk:
    """The way along the lines of a file and what was known of them, from the first to the last."""

    def __init__(self, lines: CleanLines, marker: Marker, old: LineMarks, found: LineMarks, new: BinaryIO) -> None:
        kept = old.marks.seek(0, io.SEEK_END) // WIDTH
        old.marks.seek(0)
        self._lines = lines
        self._marker = marker
        self._alignment = Alignment(old.marks, LEAST + int(kept * MOST_SHARE))
        self._known = KnownSpans(old.spans)
        self._marks = found.marks
        self._spans = FreshSpans(found.spans, marker.seed)
        self._new = new
        # Lines that were read and are not settled, with their marks, and the number of the first of them, or else of
        # the next line.
        self._rows: list[bytes] = []
        self._waiting: list[int] = []
        self._number = HEADER_LINES + 1

    def pass_over(self) -> bool:
        """Leaves out lines that come again in whole spans, from here on; says whether there are any."""
        begun = place = self._alignment.place
        went, passed = 0, 0
        while True:
            ahead, count, size, mark = self._known.find(place)
            data = None if size == UNKNOWN or (passed and ahead) else self._lines.peek(size)
            if data is None or hash_span(data, self._marker.seed) != mark:
                break
            # Whatever the last time stood between here and the span has gone.
            place += ahead + count
            passed += count
            went = place - begun - passed
            self._lines.pass_over(count, size)
            self._spans.repeat(count, size, mark)
        if passed:
            came = len(self._waiting)
            self._settle(range(came), came)
            self._marks.write(self._alignment.pass_over(came, went, passed).tobytes())
            self._number += passed
        return passed > 0

    def read(self, block_bytes: int) -> bool:
        """Looks at the next lines: as many as lead to where the next span begins, if none came and none went. Says
        whether there are any."""
        ahead, count, _, _ = self._known.find(self._alignment.place)
        block = self._lines.take(ahead or count) if ahead or count else self._lines.read(block_bytes)
        if not block:
            return False
        rows, marks, has_secrets = self._marker.mark(block)
        self._marks.write(array(CODE, marks).tobytes())
        self._spans.add(rows, self._lines.raw, has_secrets=has_secrets)
        self._rows += rows
        self._waiting += marks
        self._settle(*self._alignment.find_new(self._waiting, is_last=False))
        return True

    def end(self) -> array[int]:
        """After the last line: the marks that are gone."""
        self._settle(*self._alignment.find_new(self._waiting, is_last=True))
        self._spans.end()
        self._alignment.end()
        return self._alignment.gone

    def _settle(self, places: Iterable[int], count: int) -> None:
        """Writes the new ones, by their places, of those that wait; the first `count` wait no longer."""
        self._new.writelines(
            b"%b,%d,%d\n" % (self._rows[place], self._waiting[place], self._number + place) for place in places
        )
        del self._rows[:count]
        del self._waiting[:count]
        self._number += count


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
