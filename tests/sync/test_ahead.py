"""Lines that are read ahead are the same lines, in the same order, with the same trouble at the same place."""

from __future__ import annotations

import threading

import pytest

from sync_scripts.ahead import BLOCKS, read_ahead
from sync_scripts.lines import SuspectBytesError


class Blocks:
    """Hands out blocks, then the end again and again; one that is an exception is raised."""

    def __init__(self, *blocks: bytes | Exception) -> None:
        self._blocks = list(blocks)
        self.sizes: list[int] = []
        self.threads: set[int] = set()

    def read(self, size: int) -> bytes:
        self.sizes.append(size)
        self.threads.add(threading.get_ident())
        block = self._blocks.pop(0) if self._blocks else b""
        if isinstance(block, Exception):
            raise block
        return block


@pytest.mark.parametrize("count", [0, 1, BLOCKS, 3 * BLOCKS + 1])
def test_blocks_come_in_their_order(count: int) -> None:
    made = [b"%d\n" % number for number in range(count)]
    blocks = Blocks(*made)
    with read_ahead(blocks, 100) as ahead:
        assert [ahead.read(7) for _ in range(count + 2)] == [*made, b"", b""]
    assert set(blocks.sizes) == {100}
    assert len(blocks.threads) == 1
    assert threading.get_ident() not in blocks.threads


@pytest.mark.parametrize("error", [SuspectBytesError(), EOFError("cut off")], ids=["suspect", "damaged"])
def test_trouble_comes_at_its_place(error: Exception) -> None:
    with read_ahead(Blocks(b"1\n", b"2\n", error, b"3\n"), 100) as ahead:
        assert [ahead.read(100), ahead.read(100)] == [b"1\n", b"2\n"]
        with pytest.raises(type(error)):
            ahead.read(100)


def test_nothing_is_read_behind_the_end_of_the_statements() -> None:
    blocks = Blocks(*[b"1\n"] * 100)
    with read_ahead(blocks, 100) as ahead:
        ahead.read(100)
    read = len(blocks.sizes)
    assert read <= BLOCKS
    with pytest.raises(RuntimeError):
        ahead.read(100)
    assert len(blocks.sizes) == read
