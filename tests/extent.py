"""How much a run tries: `make check` a sample of what repeats, `make check-long` (TESTS=all) all of it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

VARIABLE = "TESTS"
TRIES_ALL = os.environ.get(VARIABLE) == "all"

A = TypeVar("A")
B = TypeVar("B")


def examples(sample: int, all_of_them: int) -> int:
    """How many examples of a property this run makes."""
    return all_of_them if TRIES_ALL else sample


def pair(items: Sequence[A], others: Sequence[B], always: Iterable[A] = ()) -> Iterator[tuple[B, A]]:
    """Pairs of each item with one of the others in turn; those of `always`, and in a run of all every item, with each
    of the others."""
    kept = tuple(always)
    for number, item in enumerate(items):
        # Items of two kinds that take turns do not each get the same one of two.
        turn = (number + number // len(others)) % len(others)
        for place, other in enumerate(others):
            if TRIES_ALL or place == turn or item in kept:
                yield other, item
