"""Chance that can be repeated: numbers that follow from a name alone.

Nothing is drawn from a common stream, so a student is the same student in every file and in every size of district,
no matter what was asked before, and nothing has to be kept.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

Item = TypeVar("Item")
_NUMBERS = struct.Struct("<16I")


class Dice:
    """The numbers of one name, one after the other: the same name gives the same ones. `name`: the seed and whatever
    tells this thing from all others."""

    def __init__(self, *name: object) -> None:
        self._name = "/".join(map(str, name)).encode()
        self._numbers: tuple[int, ...] = ()
        self._next = 0

    def roll(self, sides: int) -> int:
        """A number from 0 to `sides` - 1."""
        if self._next == len(self._numbers):
            digest = blake2b(self._name, digest_size=64, salt=self._next.to_bytes(8, "little")).digest()
            self._numbers += _NUMBERS.unpack(digest)
        number = self._numbers[self._next]
        self._next += 1
        return number % sides

    def pick(self, items: Sequence[Item]) -> Item:
        """One of the items."""
        return items[self.roll(len(items))]

    def chance(self, percent: int) -> bool:
        """True in so many of a hundred cases."""
        return self.roll(100) < percent


def make_guid(*name: object) -> str:
    """An id in the form of a GUID that follows from the name."""
    digits = blake2b("/".join(map(str, name)).encode(), digest_size=16).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
