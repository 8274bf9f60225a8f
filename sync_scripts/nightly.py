"""`python -m sync_scripts.nightly`: loads the export of every enabled feed in turn, purges old tombstones, and makes
ready what callers will ask for first.

One feed that fails does not stop the others; the worst exit code of all is the script's own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from sqlalchemy import Engine, select

from roster_service.db.tables import feeds
from roster_service.errors import CommandError
from roster_service.publication import warm_up
from roster_service.settings import Settings
from sync_scripts.engine.exit_codes import (
    HELP,
    ExitCode,
    choose_error_code,
    choose_exit_code,
    describe_error,
    exit_on_error,
    print_fault,
)
from sync_scripts.engine.load import Options, load
from sync_scripts.engine.loader_command import open_roster_engine
from sync_scripts.engine.progress import Notify, is_step, notify_steps, print_line, show_bars
from sync_scripts.purge import purge
from sync_scripts.reading.registry import FAMILIES


@dataclass(frozen=True)
class Feed:
    """A feed that is loaded each night."""

    name: str
    format: str
    path: Path


def list_nightly_feeds(engine: Engine) -> list[Feed]:
    """The enabled feeds whose export has a place, by name."""
    wanted = select(feeds.c.name, feeds.c.format, feeds.c.path).where(feeds.c.enabled, feeds.c.path.is_not(None))
    with engine.connect() as connection:
        return [Feed(name, form, Path(path)) for name, form, path in connection.execute(wanted.order_by(feeds.c.name))]


def run_nightly(engine: Engine, settings: Settings, notify: Notify) -> ExitCode:
    """Loads every feed, purges, and makes the orderings of the new roster.

    `notify` is given one object per step, and one per feed with its outcome.
    """
    loads = [partial(_load, engine, feed, settings, notify) for feed in list_nightly_feeds(engine)]
    codes = [_guard(load_feed, {"feed": load_feed.args[1].name}, notify) for load_feed in loads]
    codes.append(_guard(partial(_purge, engine, settings, notify), {"step": "purge"}, notify))
    # The roster is there, and right, whether or not this goes well.
    _guard(partial(_warm_up, engine, settings, notify), {"step": "warm"}, notify)
    return max(codes)


def _warm_up(engine: Engine, settings: Settings, notify: Notify) -> ExitCode:
    warmed = warm_up(engine, settings)
    notify({"step": "warm", "warmed": {"orderings": warmed.kept, "left": warmed.left}, "exit": ExitCode.LOADED})
    return ExitCode.LOADED


def _purge(engine: Engine, settings: Settings, notify: Notify) -> ExitCode:
    notify(
        {
            "step": "purge",
            "purged": purge(engine, settings.retention_days, settings.rendition_megabytes),
            "exit": ExitCode.LOADED,
        }
    )
    return ExitCode.LOADED


def _load(engine: Engine, feed: Feed, settings: Settings, notify: Notify) -> ExitCode:
    if feed.format not in FAMILIES:
        raise CommandError(f"the feed {feed.name} takes {feed.format}, which this version does not know")
    options = Options(settings, notify=notify_steps(notify, feed.name))
    report = load(engine, feed.name, feed.path, family=FAMILIES[feed.format], options=options)
    code = choose_exit_code(report)
    notify({**report.to_json(), "exit": code})
    return code


def _guard(work: Callable[[], ExitCode], place: dict[str, str], notify: Notify) -> ExitCode:
    """Does the work; whatever goes wrong with it is told, and stays its own affair."""
    try:
        return work()
    except Exception as error:  # noqa: BLE001  (a mistake of ours must not cost the other feeds their night)
        code = choose_error_code(error)
        notify({**place, **describe_error(error), "exit": code})
        print_fault(error)
        return code


@contextmanager
def _show_events() -> Iterator[Notify]:
    """On a terminal a bar per feed, and a line for its outcome; elsewhere one JSON line per step."""
    if not sys.stdout.isatty():
        yield lambda event: print_line(event, err=False)
        return
    console = Console()
    with show_bars(console) as bars:

        def notify(event: dict[str, Any]) -> None:
            if is_step(event):
                bars.advance(event)
                return
            name = event.get("feed") or event["step"]
            bars.remove(name)
            counts = event.get("purged") or event.get("warmed") or _sum_counts(event.get("counts", {}))
            words = ", ".join(f"{count:,} {word}" for word, count in counts.items() if count)
            outcome = event.get("outcome", "done")
            console.print(f"{name}: {outcome}", words, event.get("message") or "", markup=False, highlight=False)

        yield notify


def _sum_counts(counts: dict[str, dict[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for count in counts.values():
        for word, number in count.items():
            total[word] = total.get(word, 0) + number
    return total


@click.command(epilog=HELP)
def main() -> None:
    """Load the export of every enabled feed, remove the tombstones that are older than ROSTER_RETENTION_DAYS, and make
    ready what callers will ask for first, for at most ROSTER_WARM_SECONDS.

    Ends with the worst exit code of all.
    """
    with exit_on_error(as_json=not sys.stdout.isatty()):
        settings = Settings.from_environ(os.environ)
        with open_roster_engine(settings) as engine, _show_events() as notify:
            code = run_nightly(engine, settings, notify)
    sys.exit(code)


if __name__ == "__main__":
    main()
