"""`python -m sync_scripts.nightly`: the nightly sync. It loads the export of every enabled feed, purges old
tombstones, and makes the orderings that clients will request first.

A feed that fails does not stop the others. The exit code of the script is the worst of all.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any

import click
import sqlalchemy as sa
from rich.console import Console

from roster_service.db.tables import roster_state
from roster_service.feeds.data_quality import store_counts
from roster_service.roster.label_check import WrongLabelsError, find_wrong_labels
from roster_service.roster.upgrades import open_roster_engine
from roster_service.settings import Settings
from roster_service.warm_up import warm_up
from sync_scripts.access_log_days import fold_days
from sync_scripts.deliver import deliver_files
from sync_scripts.engine.exit_codes import (
    HELP,
    ExitCode,
    choose_error_code,
    describe_error,
    exit_on_error,
    find_worst,
    print_fault,
)
from sync_scripts.engine.loader_command import WAIT
from sync_scripts.engine.nightly_feeds import NightlySync, announce_ends, load_feeds
from sync_scripts.engine.progress import Notify, is_step, print_line, show_bars
from sync_scripts.notifications.channels import list_channels
from sync_scripts.purge import purge
from sync_scripts.retention import delete_expired, delete_old_orderings


def run_nightly(engine: sa.Engine, settings: Settings, notify: Notify, *, wait: bool = False) -> ExitCode:
    """Loads every feed, announces credentials that end soon, deletes the rows of logs and runs whose days are over,
    makes the rows of days of the access log, purges, checks the visibility labels of all records, makes the orderings
    of the new roster, counts the findings of data quality, and sends files to receivers. Returns the worst exit code.

    Passes to `notify` one event per step of a load, and one per feed with its outcome. `wait`: as in `load.Options`.
    """
    sync = NightlySync(engine, settings, _take_turns(notify), wait=wait)
    codes = load_feeds(sync)
    codes.append(_guard(partial(_announce_ends, sync), {"step": "credentials"}, notify))
    codes.append(_guard(partial(_note_channels, engine, settings), {"step": "channels"}, notify))
    codes.append(_guard(partial(_delete_expired, engine, settings, notify), {"step": "retention"}, notify))
    codes.append(_guard(partial(_fold_days, engine, notify), {"step": "access log"}, notify))
    codes.append(_guard(partial(_purge, engine, settings, notify, wait=wait), {"step": "purge"}, notify))
    codes.append(_guard(partial(_check_labels, engine, notify), {"step": "labels"}, notify))
    # A failure here does not change the exit code: the roster is complete without these orderings and counts.
    _guard(partial(_warm_up, engine, settings, notify), {"step": "warm"}, notify)
    _guard(partial(_store_counts, engine, notify), {"step": "quality"}, notify)
    # Last: what was not sent is tried again after pauses. Nor does it change the exit code of the sync.
    _guard(partial(deliver_files, engine, settings, notify), {"step": "delivery"}, notify)
    return find_worst(codes)


def _announce_ends(sync: NightlySync) -> ExitCode:
    announce_ends(sync, datetime.now(UTC).date())
    return ExitCode.LOADED


def _note_channels(engine: sa.Engine, settings: Settings) -> ExitCode:
    """Notes over which channels this sync announces: the console may have other settings."""
    names = [name for name, _ in list_channels(settings)]
    with engine.begin() as connection:
        connection.execute(sa.update(roster_state).values(sync_channels=names))
    return ExitCode.LOADED


def _check_labels(engine: sa.Engine, notify: Notify) -> ExitCode:
    with engine.connect() as connection:
        wrong = find_wrong_labels(connection)
    if wrong:
        raise WrongLabelsError(wrong)
    notify({"step": "labels", "exit": ExitCode.LOADED})
    return ExitCode.LOADED


def _warm_up(engine: sa.Engine, settings: Settings, notify: Notify) -> ExitCode:
    warmed = warm_up(engine, settings)
    notify({"step": "warm", "warmed": {"orderings": warmed.kept, "left": warmed.left}, "exit": ExitCode.LOADED})
    return ExitCode.LOADED


def _store_counts(engine: sa.Engine, notify: Notify) -> ExitCode:
    notify({"step": "quality", "counted": {"feeds": store_counts(engine)}, "exit": ExitCode.LOADED})
    return ExitCode.LOADED


def _take_turns(notify: Notify) -> Notify:
    """The function that passes the events of several threads to `notify`, one at a time."""
    lock = threading.Lock()

    def notify_alone(event: dict[str, Any]) -> None:
        with lock:
            notify(event)

    return notify_alone


def _delete_expired(engine: sa.Engine, settings: Settings, notify: Notify) -> ExitCode:
    deleted = delete_expired(engine, settings)
    delete_old_orderings(engine)
    notify({"step": "retention", "deleted": deleted, "exit": ExitCode.LOADED})
    return ExitCode.LOADED


def _fold_days(engine: sa.Engine, notify: Notify) -> ExitCode:
    notify({"step": "access log", "folded": {"responses": fold_days(engine)}, "exit": ExitCode.LOADED})
    return ExitCode.LOADED


def _purge(engine: sa.Engine, settings: Settings, notify: Notify, *, wait: bool) -> ExitCode:
    notify(
        {
            "step": "purge",
            "purged": purge(engine, settings.retention_days, wait=wait),
            "exit": ExitCode.LOADED,
        }
    )
    return ExitCode.LOADED


def _guard(work: Callable[[], ExitCode], subject: dict[str, str], notify: Notify) -> ExitCode:
    """Calls `work` and returns its exit code. An error becomes an event for `notify`, with `subject` in it, and an exit
    code, so that it does not stop the nightly sync."""
    try:
        return work()
    except Exception as error:  # noqa: BLE001  (a fault of the program must not stop the other feeds)
        code = choose_error_code(error)
        notify({**subject, **describe_error(error), "exit": code})
        print_fault(error)
        return code


@contextmanager
def _show_events() -> Iterator[Notify]:
    """Yields the function that shows events: on a terminal a bar per feed and a line for its outcome, elsewhere one
    JSON line per event."""
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
            steps = ("deleted", "folded", "purged", "warmed", "counted")
            counts = next((event[step] for step in steps if step in event), None)
            counts = _sum_counts(event.get("counts", {})) if counts is None else counts
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
@click.option(
    "--jobs",
    type=click.IntRange(1, 64),
    help="How many feeds are loaded at the same time, in place of ROSTER_SYNC_JOBS.",
)
@WAIT
def main(jobs: int | None, wait: bool) -> None:
    """Load the export of every enabled feed, remove the tombstones that are older than ROSTER_RETENTION_DAYS and the
    rows of logs and runs whose days are over, make the orderings that clients will request first, for at most
    ROSTER_WARM_SECONDS, count the findings of data quality, and send the files of deliveries without an hour.

    The exit code is the worst of all.
    """
    with exit_on_error(as_json=not sys.stdout.isatty()):
        settings = Settings.from_environ(os.environ)
        if jobs is not None:
            settings = dataclasses.replace(settings, sync_jobs=jobs)
        with open_roster_engine(settings) as engine, _show_events() as notify:
            code = run_nightly(engine, settings, notify, wait=wait)
    sys.exit(code)


if __name__ == "__main__":
    main()
