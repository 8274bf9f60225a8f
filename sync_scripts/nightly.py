"""`python -m sync_scripts.nightly`: the nightly sync. It loads the export of every enabled feed, purges old
tombstones, and makes the orderings that clients will request first.

A feed that fails does not stop the others. The exit code of the script is the worst of all.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import click
import sqlalchemy as sa
from rich.console import Console

from roster_service.db.tables import roster_state
from roster_service.deliveries.sender import Sender
from roster_service.feeds.data_quality import store_counts
from roster_service.feeds.exclusions import renew_statistics
from roster_service.feeds.group_check import WrongGroupsError, find_wrong_groups
from roster_service.roster.label_check import WrongLabelsError, find_wrong_labels
from roster_service.roster.revisions import open_roster_engine
from roster_service.settings import Settings
from roster_service.warm_up import warm_up
from sync_scripts.access_log_days import fold_days
from sync_scripts.deliver import send_due
from sync_scripts.engine import exit_codes
from sync_scripts.engine.agreement_ends import announce_agreements
from sync_scripts.engine.exit_codes import ExitCode
from sync_scripts.engine.loader_command import WAIT
from sync_scripts.engine.nightly_feeds import NightlySync, announce_ends, find_day_before, load_feeds
from sync_scripts.engine.progress import Notify, is_step, print_line, show_bars
from sync_scripts.engine.run_record import translate_database_errors
from sync_scripts.notifications.channels import list_channels
from sync_scripts.purge import purge
from sync_scripts.retention import delete_expired, delete_old_orderings

# The work of a step. It returns what its event says as a dict; a step that returns anything else has no event.
Step = Callable[[], object]
# A failure of these does not change the exit code: the roster is complete without orderings, counts and deliveries.
OPTIONAL_STEPS = frozenset({"warm", "quality", "delivery"})


def run_nightly(engine: sa.Engine, settings: Settings, notify: Notify, *, wait: bool = False) -> ExitCode:
    """Loads every feed, announces credentials that end soon, deletes the rows of logs and runs whose days are over,
    makes the rows of days of the access log, purges, announces agreements that end soon and publishes what they leave,
    checks the visibility labels of all records, makes the orderings of the new roster, counts the findings of data
    quality, and sends files to receivers. Returns the worst exit code.

    Passes to `notify` one event per step of a load, one per feed with its outcome, and one per step after the loads
    that did something or failed. `wait`: as in `load.Options`.
    """
    sync = NightlySync(engine, settings, _take_turns(notify), wait=wait)
    codes = load_feeds(sync)
    for name, work in _list_steps(sync).items():
        code = _run_step(name, work, notify)
        if name not in OPTIONAL_STEPS:
            codes.append(code)
    return exit_codes.find_worst(codes)


def _list_steps(sync: NightlySync) -> Mapping[str, Step]:
    """The steps after the loads, by their names in events."""
    engine, settings = sync.engine, sync.settings
    return {
        "credentials": lambda: announce_ends(sync, datetime.now(UTC).date(), find_day_before(engine, UTC)),
        "channels": lambda: _note_channels(engine, settings),
        "retention": lambda: {"deleted": _delete_expired(engine, settings)},
        "access log": lambda: {"folded": {"responses": fold_days(engine)}},
        "purge": lambda: {"purged": purge(engine, settings.retention_days, wait=sync.wait)},
        # After the purge, and for the erasures of the console, which does not own the tables.
        "statistics": lambda: renew_statistics(engine),
        # After what changes the roster, because it also publishes what vendors may get of it.
        "agreements": lambda: announce_agreements(sync),
        "labels": lambda: _check_visibility(engine),
        "warm": lambda: {"warmed": _warm_up(engine, settings)},
        "quality": lambda: {"counted": {"feeds": store_counts(engine)}},
        # Last: what was not sent is tried again after pauses.
        "delivery": lambda: send_due(Sender(engine, settings), sync.notify, after_sync=True),
    }


def _run_step(name: str, work: Step, notify: Notify) -> ExitCode:
    """Does the work of a step, and returns its exit code. Its result becomes an event for `notify`, and so does an
    error, so that it does not stop the nightly sync."""
    try:
        with translate_database_errors():
            result = work()
        if isinstance(result, dict):
            notify({"step": name, **result, "exit": ExitCode.LOADED})
    except Exception as error:  # noqa: BLE001  (a fault of the program must not stop the other steps)
        code = exit_codes.choose_error_code(error)
        notify({"step": name, **exit_codes.describe_error(error), "exit": code})
        exit_codes.print_fault(error)
        return code
    return ExitCode.LOADED


def _note_channels(engine: sa.Engine, settings: Settings) -> None:
    """Notes over which channels this sync announces: the console may have other settings."""
    names = [name for name, _ in list_channels(settings)]
    with engine.begin() as connection:
        connection.execute(sa.update(roster_state).values(sync_channels=names))


def _delete_expired(engine: sa.Engine, settings: Settings) -> dict[str, int]:
    deleted = delete_expired(engine, settings)
    delete_old_orderings(engine)
    return deleted


def _check_visibility(engine: sa.Engine) -> dict[str, Any]:
    # One state of the roster for all statements: a load by hand may commit between them.
    with engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
        if wrong := find_wrong_labels(connection):
            raise WrongLabelsError(wrong)
        if groups := find_wrong_groups(connection):
            raise WrongGroupsError(groups)
    return {}


def _warm_up(engine: sa.Engine, settings: Settings) -> dict[str, int]:
    warmed = warm_up(engine, settings)
    return {"orderings": warmed.kept, "left": warmed.left}


def _take_turns(notify: Notify) -> Notify:
    """The function that passes the events of several threads to `notify`, one at a time."""
    lock = threading.Lock()

    def notify_alone(event: dict[str, Any]) -> None:
        with lock:
            notify(event)

    return notify_alone


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


@click.command(epilog=exit_codes.HELP)
@click.option(
    "--jobs",
    type=click.IntRange(1, 64),
    help="How many feeds are loaded at the same time, in place of ROSTER_SYNC_JOBS.",
)
@WAIT
def main(jobs: int | None, wait: bool) -> None:
    """Load the export of every enabled feed, and do all else of a night.

    Removes the tombstones that are older than ROSTER_RETENTION_DAYS and the rows of logs and runs whose days are over,
    makes the orderings that clients will request first, counts the findings of data quality, and sends the files of
    deliveries without an hour. The exit code is the worst of all.
    """
    with exit_codes.exit_on_error(as_json=not sys.stdout.isatty()):
        settings = Settings.read(os.environ)
        if jobs is not None:
            settings = dataclasses.replace(settings, sync_jobs=jobs)
        with open_roster_engine(settings) as engine, _show_events() as notify:
            code = run_nightly(engine, settings, notify, wait=wait)
    sys.exit(code)


if __name__ == "__main__":
    main()
