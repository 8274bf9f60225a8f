"""The progress inside a step of a run."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Protocol, TypeVar

Item = TypeVar("Item")


class Follow(Protocol):
    """A function that returns the items of a collection one by one, and notifies an observer after each."""

    def __call__(self, items: Collection[Item], /) -> Iterator[Item]: ...
