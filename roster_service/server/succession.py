"""The generations of workers: a worker that gunicorn replaces learns when its successors are ready.

gunicorn's master makes each worker, with a number that grows, and forks it. The master and all workers share a piece of
memory: the greatest number, and a state for each of the last numbers.
"""

from __future__ import annotations

import mmap
import struct

# More than the workers of two generations.
SLOTS = 4096
BORN, READY = 1, 2
_NEWEST = struct.Struct("q")


class Succession:
    """The states of workers by their numbers. Made before the first fork."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _NEWEST.size + SLOTS)

    def add(self, number: int) -> None:
        """Notes a worker that is about to be forked; the master calls this."""
        self._set(number, BORN)
        _NEWEST.pack_into(self._memory, 0, number)

    def set_ready(self, number: int) -> None:
        """Notes that a worker answers requests."""
        self._set(number, READY)

    def has_successors(self, number: int, workers: int) -> bool:
        """Returns whether a worker is of a generation that is being replaced. `workers`: the number of a generation."""
        return self._find_newest() - number >= workers

    def is_succeeded(self, number: int, workers: int) -> bool:
        """Returns whether as many newer workers as a generation has answer requests."""
        newer = range(number + 1, self._find_newest() + 1)[-SLOTS:]
        return sum(self._memory[self._place(number)] == READY for number in newer) >= workers

    def _find_newest(self) -> int:
        return int(_NEWEST.unpack_from(self._memory, 0)[0])

    def _set(self, number: int, state: int) -> None:
        self._memory[self._place(number)] = state

    @staticmethod
    def _place(number: int) -> int:
        return _NEWEST.size + number % SLOTS
