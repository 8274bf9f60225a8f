"""Rows with empty cells beyond the last column: some exporters write one comma too many, in every row or in some.

A comma without quotes inside a cell, or one too many between two cells, makes such a row, too, where the last column is
empty: then the cells behind it stand too far right. What the other rows have in each column tells them apart. Where
every row has such cells, the rows can only speak for each other: a few prove nothing, and a cell that begins with a
space is the rest of a sentence.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

# The rows that are looked at, the most cells beyond the last column of a row that is looked at, and the fewest rows
# that speak for each other.
_ROWS, _MOST, _FEWEST = 1000, 3, 3
_LETTERS, _DIGITS = re.compile(rb"[^\W\d_]+|[\x80-\xff]+"), re.compile(rb"\d+")


class ColumnShapes:
    """What the rows of a file have in each of its columns: how often each shape, such as `9-9-9` of a day."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._seen: list[Counter[bytes]] = [Counter() for _ in range(width)]
        self._rows = 0
        self._all = 0
        # The fewest cells beyond the last column.
        self._least: int | None = None
        self._known: dict[tuple[bytes, ...], bool] = {}

    @property
    def has_enough(self) -> bool:
        """Whether it needs no more rows."""
        return self._rows >= _ROWS and self._least == 0

    def add(self, cells: Sequence[bytes]) -> None:
        """Adds a row with as many cells as columns, or more. Those with the fewest count."""
        more = len(cells) - self._width
        self._all += 1
        if self._least is None or more < self._least:
            self._seen, self._rows, self._least = [Counter() for _ in range(self._width)], 0, more
        if more == self._least and self._rows < _ROWS:
            for seen, cell in zip(self._seen, cells, strict=False):
                seen[_find_shape(cell)] += 1
            self._rows += 1

    def is_whole(self, cells: Sequence[bytes]) -> bool:
        """Returns whether the cells of a row are each of its own column: no comma before them explains the row as well.
        `cells`: more than there are columns, empty beyond the last one."""
        more = len(cells) - self._width
        if more > _MOST:
            return False
        if more == self._least:
            return self._all >= _FEWEST and not any(cell.startswith(b" ") for cell in cells)
        # Most rows of a file have the same shapes as others.
        shapes = tuple(map(_find_shape, cells))
        if shapes not in self._known:
            if len(self._known) >= _ROWS:
                self._known.clear()
            self._known[shapes] = self._explains_best(shapes)
        return self._known[shapes]

    def _explains_best(self, shapes: Sequence[bytes]) -> bool:
        """Whether the shapes of the cells of a row fit better where they are than without a comma before them."""
        written = list(shapes[: self._width])
        fit = self._fit(written)
        for count in range(1, len(shapes) - self._width + 1):
            for start in range(self._width):
                joined = b",".join(shapes[start : start + count + 1])
                # A comma too many between two cells is in none of them.
                joined = joined if joined.strip(b",") else b""
                meant = [*shapes[:start], joined, *shapes[start + count + 1 :]][: self._width]
                if meant != written and self._fit(meant) >= fit:
                    return False
        return True

    def _fit(self, shapes: Sequence[bytes]) -> int:
        return sum(seen[shape] for seen, shape in zip(self._seen, shapes, strict=False))


def _find_shape(cell: bytes) -> bytes:
    return _DIGITS.sub(b"9", _LETTERS.sub(b"a", cell))
