"""Rows with empty cells beyond the last column: some exporters write one comma too many, in every row or in some.

A comma without quotes inside a cell, or one too many between two cells, makes such a row, too, where the last column is
empty: then the cells behind it stand too far right. What the other rows have in each column tells them apart.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

# The rows that are looked at, and the most cells beyond the last column of a row that is looked at.
_ROWS, _MOST = 1000, 3
_LETTERS, _DIGITS = re.compile(rb"[^\W\d_]+|[\x80-\xff]+"), re.compile(rb"\d+")


class ColumnShapes:
    """What the rows of a file have in each of its columns: how often each shape, such as `9-9-9` of a day."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._seen: list[Counter[bytes]] = [Counter() for _ in range(width)]
        self._rows = 0

    @property
    def has_enough(self) -> bool:
        """Whether it needs no more rows."""
        return self._rows >= _ROWS

    def add(self, cells: Sequence[bytes]) -> None:
        """Adds a row, as it is if it had no cells beyond the last column."""
        for seen, cell in zip(self._seen, cells, strict=False):
            seen[_find_shape(cell)] += 1
        self._rows += 1

    def is_whole(self, cells: Sequence[bytes]) -> bool:
        """Returns whether the cells of a row are each of its own column: no comma before them explains the row as well.
        `cells`: more than there are columns, empty beyond the last one."""
        more = len(cells) - self._width
        if more > _MOST:
            return False
        written = cells[: self._width]
        fit = self._fit(written)
        for count in range(1, more + 1):
            for start in range(self._width):
                joined = b",".join(cells[start : start + count + 1])
                # A comma too many between two cells is in none of them.
                joined = joined if joined.strip(b",") else b""
                meant = [*cells[:start], joined, *cells[start + count + 1 :]][: self._width]
                if meant != written and self._fit(meant) >= fit:
                    return False
        return True

    def _fit(self, cells: Sequence[bytes]) -> int:
        return sum(seen[_find_shape(cell)] for seen, cell in zip(self._seen, cells, strict=False))


def _find_shape(cell: bytes) -> bytes:
    return _DIGITS.sub(b"9", _LETTERS.sub(b"a", cell))
