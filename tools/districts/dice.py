"""Repeatable random numbers, which depend only on a name.

There is no common stream of numbers. So a student is the same in every file and in districts of every size, in any
order of calls, and nothing has to be stored.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

Item = TypeVar("Item")
_NUMBERS = struct.Struct("<16I")


class Dice:
    """The sequence of random numbers of one name; the same name gives the same sequence. `name`: the seed, and values
    that identify the object."""

    def __init__(self, *name: object) -> None:
        self._name = "/".join(map(str, name)).encode()
        self._numbers: tuple[int, ...] = ()
        self._next = 0

    def roll(self, sides: int) -> int:
        """The next number, from 0 to `sides` - 1."""
        if self._next == len(self._numbers):
            digest = blake2b(self._name, digest_size=64, salt=self._next.to_bytes(8, "little")).digest()
            self._numbers += _NUMBERS.unpack(digest)
        number = self._numbers[self._next]
        self._next += 1
        return number % sides

    def pick(self, items: Sequence[Item]) -> Item:
        """One of the items, by the next number."""
        return items[self.roll(len(items))]

    def chance(self, percent: int) -> bool:
        """True in `percent` of a hundred cases, by the next number."""
        return self.roll(100) < percent


def make_guid(*name: object) -> str:
    """An id in the form of a GUID, which depends only on the name."""
    digits = blake2b("/".join(map(str, name)).encode(), digest_size=16).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
