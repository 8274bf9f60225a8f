"""Spans: some lines of a file that follow each other, known by one hash of their bytes.

A file that came before is nearly the same the next night. Where a span comes again, none of its lines is searched,
taken apart or hashed by itself. Of lines with secrets nothing may be kept, not even a hash: their spans are known by
nothing.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence

from xxhash import xxh3_64_intdigest

from sync_scripts.aligning import CODE

# Lines of a span: of many, one that changed is nearly always among them; of few, too little is saved.
LINES = 32
# Of what each span has: how many lines that are kept, the bytes of its lines, and their hash.
PARTS = 3
# So many lines that were read may wait to become spans, and those that are read at once.
MOST_WAITING = 16 * LINES
# The bytes of a span that is known by nothing.
UNKNOWN = 0


def hash_span(data: bytes | memoryview, seed: int) -> int:
    """The hash of the bytes of a span; `seed`: of the file's marks."""
    return xxh3_64_intdigest(data, seed) >> 1


def cut_spans(rows: Sequence[bytes], raw: bytes, seed: int, *, has_secrets: bool) -> array[int]:
    """The spans of these lines. `raw`: the same lines as they stand in the file, with their ends."""
    found = array(CODE)
    ends = len(raw) - sum(map(len, rows))
    # Where lines do not all end alike, their places are not known.
    end = ends // max(len(rows), 1)
    if has_secrets or end * len(rows) != ends:
        found.extend((len(rows), UNKNOWN, 0))
        return found
    view, at = memoryview(raw), 0
    for first, behind in _divide(len(rows)):
        part = rows[first:behind]
        size = sum(map(len, part)) + end * len(part)
        found.extend((len(part), size, hash_span(view[at : at + size], seed)))
        at += size
    return found


def _divide(count: int) -> Iterator[tuple[int, int]]:
    """(first, behind the last) of the lines of each span; the last one may be half as long again, so that spans do not
    become shorter from night to night."""
    first = 0
    while count - first >= LINES + LINES // 2:
        yield first, first + LINES
        first += LINES
    if count > first:
        yield first, count


class FreshSpans:
    """Takes down the spans of a file from its first line to its last: those that came again, and of lines that were
    read, new ones."""

    def __init__(self, spans: array[int], seed: int) -> None:
        """`spans`: takes them; `seed`: of the file's marks."""
        self._spans = spans
        self._seed = seed
        # Lines that were read, as they are and as they stand in the file, and whether there are secrets in them.
        self._rows: list[bytes] = []
        self._raw: list[bytes] = []
        self._has_secrets = False

    def repeat(self, count: int, size: int, mark: int) -> None:
        """The next span is one that was there before."""
        self.end()
        self._spans.extend((count, size, mark))

    def add(self, rows: Sequence[bytes], raw: bytes, *, has_secrets: bool) -> None:
        """The next lines; see `cut_spans`."""
        if len(self._rows) > MOST_WAITING:
            self.end()
        self._rows += rows
        self._raw.append(raw)
        self._has_secrets = self._has_secrets or has_secrets

    def end(self) -> None:
        """After the last line that was read, before another span or the end of the file."""
        if self._rows:
            raw = b"".join(self._raw)
            self._spans.extend(cut_spans(self._rows, raw, self._seed, has_secrets=self._has_secrets))
            self._rows, self._raw, self._has_secrets = [], [], False


class KnownSpans:
    """The spans of the last time, walked from the first to the last, by the places of their lines."""

    def __init__(self, spans: array[int]) -> None:
        self._spans = spans
        self._at = 0
        self._start = 0

    def find(self, place: int) -> tuple[int, int, int, int]:
        """(lines up to the next span, its lines, its bytes, its hash), where `place` lines of the last time are done
        with: the span that begins there or behind it. Behind the last one, all are 0."""
        spans = self._spans
        while self._at < len(spans):
            count, size, mark = spans[self._at : self._at + PARTS]
            if self._start >= place and count:
                return self._start - place, count, size, mark
            self._start += count
            self._at += PARTS
        return max(self._start - place, 0), 0, UNKNOWN, 0
