"""What a run says while it is under way: bars on a terminal, else one JSON line per step."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import click
from rich.console import Console
from rich.progress import Progress, TaskID

from sync_scripts.engine.load import STEPS
from sync_scripts.engine.output import survive_lost_output

Notify = Callable[[dict[str, Any]], None]


def notify_steps(notify: Notify, feed_name: str) -> Callable[[str, float], None]:
    """What `loading.Options.notify` is, for a feed: each step becomes one object."""
    return lambda step, seconds: notify({"feed": feed_name, "step": step, "seconds": seconds})


def print_line(event: dict[str, Any], *, err: bool) -> None:
    """One object as one line, on standard error or on standard output."""
    with survive_lost_output():
        click.echo(json.dumps(event, ensure_ascii=False), err=err)


def is_step(event: dict[str, Any]) -> bool:
    """Whether an object is about a step of a load, and not about an outcome."""
    return "seconds" in event and "step" in event


class Bars:
    """A bar per feed that is being loaded."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._bars: dict[str, TaskID] = {}

    def advance(self, event: dict[str, Any]) -> None:
        """One step of a feed is done."""
        name = event["feed"]
        if name not in self._bars:
            self._bars[name] = self._progress.add_task(name, total=len(STEPS))
        self._progress.update(self._bars[name], advance=1, description=f"{name}: {event['step']}")

    def remove(self, name: str) -> None:
        """The feed is done, or never began."""
        if name in self._bars:
            self._progress.remove_task(self._bars.pop(name))


@contextmanager
def show_bars(console: Console) -> Iterator[Bars]:
    """Bars on a terminal, which are gone at the end."""
    with Progress(console=console, transient=True) as progress:
        yield Bars(progress)


@contextmanager
def show_load_steps(stream: IO[str]) -> Iterator[Notify]:
    """How a single load tells its steps, on standard error: `stream` is that."""
    if not stream.isatty():
        yield lambda event: print_line(event, err=True)
        return
    with show_bars(Console(stderr=True)) as bars:
        yield bars.advance
