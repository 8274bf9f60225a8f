"""How much a run tries. The variable TESTS decides it, here alone.

`make test` leaves out the tests marked `long`, and tries a sample of what repeats. `make test-long` (TESTS=long) runs
every test; CI does, too. `make check-long` (TESTS=all) also tries each repetition, and longer properties. TESTS=places
runs what `make test` would if each test had a place there (`tests/places.py`).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any, TypeVar

import pytest
from _pytest.mark import ParameterSet

VARIABLE = "TESTS"


class Extent(IntEnum):
    """How much a run tries; each has all of the former."""

    SAMPLE = 0
    LONG = 1
    ALL = 2


_GIVEN = os.environ.get(VARIABLE, "")
EXTENT = {"": Extent.SAMPLE, "places": Extent.SAMPLE, "long": Extent.LONG, "all": Extent.ALL}[_GIVEN]
# Whether `places.txt` leaves tests to CI, too, that have no mark.
ASKS_PLACES = _GIVEN == ""

long = pytest.mark.long

A = TypeVar("A")
B = TypeVar("B")


def examples(sample: A, long_run: A, all_of_them: A) -> A:
    """How much of something this run tries, such as the examples of a property."""
    return (sample, long_run, all_of_them)[EXTENT]


def cases(table: Mapping[str, Any], *, quick: Collection[str]) -> list[Any]:
    """One parameter for each named case of a table; those that are not in `quick` are long."""
    unknown = set(quick) - set(table)
    assert not unknown, unknown
    return [pytest.param(case, id=name, marks=() if name in quick else long) for name, case in table.items()]


def every_other(parameters: Iterable[Any]) -> list[Any]:
    """The parameters of a test; every second of them is long."""
    return [_mark_long(one) if number % 2 else one for number, one in enumerate(parameters)]


def _mark_long(parameter: Any) -> Any:
    if isinstance(parameter, ParameterSet):
        return parameter._replace(marks=[*parameter.marks, long])
    return pytest.param(*(parameter if isinstance(parameter, tuple) else (parameter,)), marks=long)


def pair(items: Sequence[A], others: Sequence[B], always: Iterable[A] = ()) -> Iterator[tuple[B, A]]:
    """Pairs of each item with one of the others in turn; those of `always`, and in a run of all every item, with each
    of the others."""
    kept = tuple(always)
    for number, item in enumerate(items):
        # Items of two kinds that take turns do not each get the same one of two.
        turn = (number + number // len(others)) % len(others)
        for place, other in enumerate(others):
            if EXTENT is Extent.ALL or place == turn or item in kept:
                yield other, item
