"""The seconds of the steps of a run, and the events of their progress."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from time import monotonic
from typing import Any

from sync_scripts.staging.temporary import Follow, Item

# Takes {"step": NAME, "part": the part of the step that is done, 0 to 1}, and at its end {"step": NAME, "seconds": N}.
Observer = Callable[[Mapping[str, Any]], None]


class Stopwatch:
    """Seconds per step, in the order of the steps. The time between two steps belongs to the later one, so that every
    second since the stopwatch was made has a name."""

    def __init__(self, notify: Observer) -> None:
        self.seconds: dict[str, float] = {}
        self._notify = notify
        self._begin = monotonic()

    @contextmanager
    def step(self, name: str) -> Iterator[Follow]:
        """Measures the block as the step `name`, and adds its time if the step has run before. Yields the function
        whose items are the parts of the step."""

        def follow(items: Collection[Item]) -> Iterator[Item]:
            for number, item in enumerate(items, 1):
                yield item
                self._notify({"step": name, "part": number / len(items)})

        self._notify({"step": name, "part": 0.0})
        yield follow
        self._add(name)
        self._notify({"step": name, "seconds": self.seconds[name]})

    def stop(self) -> None:
        """Adds the time since the last step to it."""
        self._add(next(reversed(self.seconds)))

    def _add(self, name: str) -> None:
        now = monotonic()
        self.seconds[name] = round(self.seconds.get(name, 0.0) + now - self._begin, 3)
        self._begin = now
