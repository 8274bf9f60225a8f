"""What is found new and what is found gone is, taken together, exactly the difference of two lists of marks."""

from __future__ import annotations

import io
import random
from array import array
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync_scripts.aligning import CODE, FAR, NEAR, STRIDE, Alignment, TooDifferentError

MARKS = random.Random(1).sample(range(2**62), 8 * NEAR)
OLD, FRESH = MARKS[: 5 * NEAR], MARKS[5 * NEAR :]


def align(old: list[int], new: list[int], block: int, most: int = 10**9) -> tuple[list[int], list[int]]:
    """(new marks that are not among the old ones, old ones that are gone), the new ones handed over in blocks."""
    alignment = Alignment(io.BytesIO(array(CODE, old).tobytes()), most)
    found: list[int] = []
    waiting: list[int] = []
    parts = [new[begin : begin + block] for begin in range(0, len(new), block)]
    for part in [*parts, []]:
        waiting += part
        places, settled = alignment.find_new(waiting, is_last=not part)
        found += [waiting[place] for place in places]
        del waiting[:settled]
    assert not waiting
    alignment.end()
    return found, list(alignment.gone)


CASES: dict[str, tuple[list[int], list[int], list[int]]] = {
    "nothing changed": (OLD, [], []),
    "the first came": ([*FRESH[:1], *OLD], FRESH[:1], []),
    "the last came": ([*OLD, *FRESH[:1]], FRESH[:1], []),
    "the first went": (OLD[1:], [], OLD[:1]),
    "the last went": (OLD[:-1], [], OLD[-1:]),
    "one changed": ([*OLD[:70], FRESH[0], *OLD[71:]], FRESH[:1], OLD[70:71]),
    "many came together": ([*OLD[:70], *FRESH, *OLD[70:]], FRESH, []),
    "many went together": ([*OLD[:70], *OLD[70 + 3 * NEAR :]], [], OLD[70 : 70 + 3 * NEAR]),
    "all went": ([], [], OLD),
    "all came": (FRESH, FRESH, OLD),
}


@pytest.mark.parametrize(("new", "came", "went"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("block", [1, STRIDE, 10_000])
def test_only_what_came_and_went_is_found(new: list[int], came: list[int], went: list[int], block: int) -> None:
    assert align(OLD, new, block) == (came, went)


MOVES: dict[str, Callable[[list[int]], list[int]]] = {
    "turned around": lambda old: old[::-1],
    "the last is the first": lambda old: [old[-1], *old[:-1]],
    "halves swapped": lambda old: [*old[len(old) // 2 :], *old[: len(old) // 2]],
}


@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
def test_what_moved_has_come_and_gone(move: Callable[[list[int]], list[int]]) -> None:
    found, gone = align(OLD, move(OLD), 100)
    assert sorted(found) == sorted(gone)
    assert found


def test_more_than_can_be_looked_ahead_is_found_new_and_gone() -> None:
    many = list(range(3 * FAR))
    found, gone = align(many, many[: 10 * NEAR] + many[10 * NEAR + 2 * FAR :], 10_000)
    assert Counter(many) - Counter(gone) == Counter(many[: 10 * NEAR] + many[10 * NEAR + 2 * FAR :]) - Counter(found)
    assert set(found).isdisjoint(many[: 10 * NEAR])


@pytest.mark.parametrize(("new", "came", "went"), CASES.values(), ids=CASES)
def test_what_has_too_little_in_common_is_not_walked(new: list[int], came: list[int], went: list[int]) -> None:
    changes = len(came) + len(went)
    assert align(OLD, new, 100, most=changes) == (came, went)
    if changes:
        with pytest.raises(TooDifferentError):
            align(OLD, new, 100, most=changes - 1)


FEW = st.lists(st.integers(0, 30), max_size=200)


@given(old=FEW, new=FEW, block=st.integers(1, 50))
def test_what_is_neither_new_nor_gone_is_in_both(old: list[int], new: list[int], block: int) -> None:
    found, gone = align(old, new, block)
    assert Counter(old) - Counter(gone) == Counter(new) - Counter(found)
