"""The seconds of the steps of a run, and its progress: bars on a terminal, else one JSON line per step."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from time import monotonic
from typing import IO, Any

import click
from rich.console import Console
from rich.progress import Progress, TaskID

from roster_service.feeds.run_history import STEPS
from sync_scripts.staging.temporary import Follow, Item


@contextmanager
def survive_lost_output() -> Iterator[None]:
    """Wraps printing, and nothing else. It redirects a failed stream to the null device; otherwise the interpreter
    would fail to flush the stream at its end and exit with a code of its own."""
    try:
        yield
    except OSError:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


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


# Takes an event: a step, or the outcome of a feed, as one object for json.dumps.
Notify = Callable[[dict[str, Any]], None]


def notify_steps(notify: Notify, feed_name: str) -> Observer:
    """The function for `load.Options.notify` that passes the events of a feed to `notify`, with its name."""
    return lambda event: notify({"feed": feed_name, **event})


def print_line(event: dict[str, Any], *, err: bool) -> None:
    """Prints an event as one line of JSON, on standard error (`err`) or on standard output; a part of a step is no
    line."""
    if "part" not in event:
        with survive_lost_output():
            click.echo(json.dumps(event, ensure_ascii=False), err=err)


def is_step(event: dict[str, Any]) -> bool:
    """Whether an event is of a step of a load and not an outcome."""
    return "step" in event and ("part" in event or "seconds" in event)


class Bars:
    """Progress bars, one per feed that is loading."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._bars: dict[str, TaskID] = {}

    def advance(self, event: dict[str, Any]) -> None:
        """Moves the bar of a feed on to the part of the step that is done, and adds the bar at the first step."""
        name = event["feed"]
        if name not in self._bars:
            self._bars[name] = self._progress.add_task(name, total=len(STEPS))
        done = STEPS.index(event["step"]) + event.get("part", 1.0)
        self._progress.update(self._bars[name], completed=done, description=f"{name}: {event['step']}")

    def remove(self, name: str) -> None:
        """Removes the bar of a feed, if it has one."""
        if name in self._bars:
            self._progress.remove_task(self._bars.pop(name))


@contextmanager
def show_bars(console: Console) -> Iterator[Bars]:
    """Shows bars on a terminal until the block ends."""
    with Progress(console=console, transient=True) as progress:
        yield Bars(progress)


@contextmanager
def show_load_steps(stream: IO[str]) -> Iterator[Notify]:
    """Yields the function that shows the steps of a single load on standard error. `stream`: standard error."""
    if not stream.isatty():
        yield lambda event: print_line(event, err=True)
        return
    with show_bars(Console(stderr=True)) as bars:
        yield bars.advance
