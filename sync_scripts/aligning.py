"""Finds in a file the lines that were not in it the last time, by the marks of all its lines, old and new.

Exports keep the order of their rows from night to night, so both lists of marks are walked side by side. Where they
part, the next line that both have is looked for nearby, then farther on in the old one. A line that moved is one that
went and one that came, which costs a closer look and is right.
"""

from __future__ import annotations

from array import array
from typing import BinaryIO

# Of signed numbers of 64 bits.
CODE, WIDTH = "q", 8
# As long as both lists are the same, so many marks are compared at once.
STRIDE = 32
# How far the next common line is looked for, first and then.
NEAR, FAR = 64, 65_536
# Marks that are read at once; more than `FAR`.
READ_MARKS = 2 * FAR


class TooDifferentError(Exception):
    """Both lists have so little in common, or in so different an order, that walking them side by side is no use."""


class Alignment:
    """The walk along the old marks. `gone`: those that the new lines do not have, complete after `end`."""

    def __init__(self, old: BinaryIO, most: int) -> None:
        """`old`: the marks in the order of their lines, as bytes of this machine's signed 64-bit numbers. `most`: how
        many marks may come and go together; TooDifferentError says that there are more."""
        self._old = old
        self._most = most
        self._came = 0
        self._ahead: list[int] = []
        self._at = 0
        # The places of the old marks from here to `FAR`, counted from here; made once they are needed.
        self._far: dict[int, int] | None = None
        self.gone: array[int] = array(CODE)
        # How many of the old marks are done with.
        self.place = 0

    def find_new(self, marks: list[int], *, is_last: bool) -> tuple[list[int], int]:
        """(the places of those of the next new lines, by their marks, that are not among the old ones; how many lines
        that settles). What comes behind the others may settle what they are: those that are left are to come again, at
        the beginning of the next ones, unless these are the last."""
        found: list[int] = []
        place, count = 0, len(marks)
        self._read_ahead(count + FAR)
        while place < count:
            place = self._skip_equal(marks, place)
            met = self._meet_again(marks, place, found, is_last=is_last) if place < count else place
            self._require_likeness(len(found))
            if met is None:
                break
            place = met
        self._came += len(found)
        return found, place

    def pass_over(self, came: int, went: int, count: int) -> array[int]:
        """The next old marks, `count` of them, which the next new lines are known to have too. Before them, `came` new
        lines that were not settled are not among the old ones, and `went` old ones have gone."""
        self._came += came
        self._read_ahead(went + count)
        self._lose(went)
        self._require_likeness(0)
        passed = array(CODE, self._ahead[self._at : self._at + count])
        self._advance(count)
        return passed

    def end(self) -> None:
        """After the last new line: what is left of the old ones has gone."""
        while True:
            self.gone.extend(self._ahead[self._at :])
            self._require_likeness(0)
            self._ahead, self._at = [], 0
            self._read_ahead(1)
            if not self._ahead:
                return

    def _skip_equal(self, marks: list[int], place: int) -> int:
        """The first place from here on where both lists part."""
        ahead, at, begun = self._ahead, self._at, place
        while place + STRIDE <= len(marks) and marks[place : place + STRIDE] == ahead[at : at + STRIDE]:
            place += STRIDE
            at += STRIDE
        while place < len(marks) and at < len(ahead) and marks[place] == ahead[at]:
            place += 1
            at += 1
        if place > begun:
            self._advance(at - self._at)
        return place

    def _meet_again(self, marks: list[int], place: int, found: list[int], *, is_last: bool) -> int | None:
        """Finds the next line of both; what stands before it in the new list is added to `found`, what stands before it
        in the old one has gone. Returns its place, or that of the next line to look at where there is none nearby; None
        where the lines behind these have to be seen."""
        end = min(place + NEAR, len(marks))
        near = {mark: step for step, mark in enumerate(self._ahead[self._at : self._at + NEAR])}
        if self._far is None and near.keys().isdisjoint(marks[place:end]):
            if end < place + NEAR and not is_last:
                return None
            self._far = {mark: step for step, mark in enumerate(self._ahead[self._at : self._at + FAR])}
        known = near if self._far is None else self._far
        for number in range(place, end):
            step = known.get(marks[number])
            if step is not None:
                found.extend(range(place, number))
                self._lose(step)
                return number
        found.extend(range(place, end))
        return end

    def _lose(self, steps: int) -> None:
        self.gone.extend(self._ahead[self._at : self._at + steps])
        self._advance(steps)

    def _require_likeness(self, coming: int) -> None:
        if self._came + coming + len(self.gone) > self._most:
            raise TooDifferentError

    def _advance(self, steps: int) -> None:
        self._at += steps
        self.place += steps
        if steps:
            self._far = None

    def _read_ahead(self, wanted: int) -> None:
        """Has at least so many old marks at hand, where there are as many."""
        if len(self._ahead) - self._at >= wanted:
            return
        del self._ahead[: self._at]
        self._at = 0
        while len(self._ahead) < wanted:
            more = array(CODE)
            more.frombytes(self._old.read(READ_MARKS * WIDTH))
            if not more:
                return
            self._ahead.extend(more)
