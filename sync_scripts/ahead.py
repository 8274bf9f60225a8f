"""Lines that are read ahead: while the database takes one block, the next ones are made ready."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

from sync_scripts.thinning import Lines

# How many blocks wait for the database, at most.
BLOCKS = 4


class LinesAhead:
    """The blocks of `lines`, of `size` bytes at most, made by a thread of its own before they are asked for."""

    def __init__(self, lines: Lines, size: int, thread: ThreadPoolExecutor) -> None:
        self._lines = lines
        self._size = size
        self._thread = thread
        self._made: deque[Future[bytes]] = deque()

    def read(self, _size: int) -> bytes:
        """The next block; empty at the end. Raises what reading it raised."""
        while len(self._made) < BLOCKS:
            self._made.append(self._thread.submit(self._lines.read, self._size))
        return self._made.popleft().result()


@contextmanager
def read_ahead(lines: Lines, size: int) -> Iterator[LinesAhead]:
    """Reads `lines` ahead; behind the block of statements nothing reads them any more."""
    thread = ThreadPoolExecutor(1, "lines")
    try:
        yield LinesAhead(lines, size, thread)
    finally:
        thread.shutdown(cancel_futures=True)
