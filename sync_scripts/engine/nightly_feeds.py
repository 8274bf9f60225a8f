"""The feeds of the nightly sync: each is loaded when its export is settled, and a change of its state is announced."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, and_, func, select, update

from roster_service.db.feed_states import FeedState
from roster_service.db.pauses import Pause, find_today, make_pause
from roster_service.db.sync_lock import try_sync_lock
from roster_service.db.tables import feeds, sync_runs
from roster_service.errors import CommandError
from roster_service.settings import Settings
from sync_scripts.applying.indexes import TABLES, make_missing_indexes
from sync_scripts.engine.exit_codes import (
    GOOD_CODES,
    ExitCode,
    choose_error_code,
    choose_exit_code,
    describe_error,
    print_fault,
)
from sync_scripts.engine.load import KNOWN, Options, load
from sync_scripts.engine.progress import Notify, notify_steps
from sync_scripts.notifications.announcement import Announcement, Kind
from sync_scripts.notifications.channels import announce
from sync_scripts.reading.completeness import CompletenessRule, IncompleteExportError
from sync_scripts.reading.registry import FAMILIES

# How often the sync looks at an export that is not settled, before it gives up for the night.
ATTEMPTS = 4
# The problem that an exit code means; other codes are good, or say nothing of the feed.
PROBLEMS = {
    ExitCode.HELD: Kind.HELD,
    ExitCode.STALE: Kind.STALE,
    ExitCode.REFUSED: Kind.FAILED,
    ExitCode.INCOMPLETE: Kind.FAILED,
    ExitCode.UNAVAILABLE: Kind.FAILED,
    ExitCode.FAILED: Kind.FAILED,
}


@dataclass(frozen=True)
class Feed:
    """A feed that the nightly sync loads. `alerted`: the problem that was announced last."""

    name: str
    format: str
    path: Path
    marker: str | None
    pause: Pause | None
    alerted: str | None


@dataclass(frozen=True)
class NightlySync:
    """What the loads of one nightly sync share. `notify`: for several threads, if `settings.sync_jobs` is more than 1.
    `sleep`, `now`: as in `time`; `today`: the day of the pauses. `wait`: as in `load.Options`."""

    engine: Engine
    settings: Settings
    notify: Notify
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.time
    today: Callable[[], date] = find_today
    wait: bool = False


@dataclass(frozen=True)
class _Turn:
    """A feed that waits. `ready_at`: the time before which its export is not looked at again."""

    feed: Feed
    attempt: int = 1
    ready_at: float = 0.0


def list_nightly_feeds(engine: Engine) -> list[Feed]:
    """The enabled feeds that have the path of an export, ordered by name."""
    loaded = and_(feeds.c.state == FeedState.ADDED, feeds.c.enabled, feeds.c.path.is_not(None))
    wanted = select(feeds).where(loaded).order_by(feeds.c.name)
    with engine.connect() as connection:
        return [
            Feed(
                row.name,
                row.format,
                Path(row.path),
                row.marker,
                make_pause(row.pause_from, row.pause_until, row.pause_reason),
                row.alerted,
            )
            for row in connection.execute(wanted)
        ]


def load_feeds(sync: NightlySync) -> list[ExitCode]:
    """Loads every feed, `settings.sync_jobs` of them at the same time, and returns the exit code of each. A feed whose
    export may be incomplete goes behind the others, and is tried again, `ATTEMPTS` times in all. Passes one event per
    step and one per feed to `sync.notify`."""
    codes: list[ExitCode] = []
    found = list_nightly_feeds(sync.engine)
    _announce_pauses(sync, found)
    waiting = deque(_Turn(feed) for feed in found)
    # Most of a load is the work of PostgreSQL, so threads are enough. This one loads too: it alone gets an interrupt.
    work = (sync, waiting, codes)
    others = [threading.Thread(target=_load_in_turn, args=work) for _ in found[1 : sync.settings.sync_jobs]]
    if others:
        _make_indexes(sync.engine)
    for thread in others:
        thread.start()
    try:
        _load_in_turn(sync, waiting, codes)
    finally:
        # After an interrupt, the others end with the load that is under way.
        waiting.clear()
        for thread in others:
            thread.join()
    return codes


def _make_indexes(engine: Engine) -> None:
    """Makes the indexes of a new roster, because the load that makes them must be the only one."""
    with engine.begin() as connection:
        if try_sync_lock(connection):
            make_missing_indexes(connection, TABLES)


def _load_in_turn(sync: NightlySync, waiting: deque[_Turn], codes: list[ExitCode]) -> None:
    """Loads the feeds that wait, one after the other, and adds the exit code of each to `codes`."""
    while True:
        try:
            turn = waiting.popleft()
        except IndexError:
            return
        feed, attempt = turn.feed, turn.attempt
        sync.sleep(max(0.0, turn.ready_at - sync.now()))
        try:
            code = _load_feed(sync, feed)
        except Exception as error:  # noqa: BLE001  (a fault of the program must not stop the other feeds)
            if isinstance(error, IncompleteExportError) and attempt < ATTEMPTS:
                waiting.append(_Turn(feed, attempt + 1, sync.now() + error.seconds))
                continue
            code = _report_error(sync, feed, error)
        codes.append(code)


def _announce_pauses(sync: NightlySync, found: list[Feed]) -> None:
    for feed in found:
        words = None if feed.pause is None else feed.pause.announce(sync.today())
        if words is not None:
            send(sync, Announcement(Kind.PAUSE, feed.name, words))


def _load_feed(sync: NightlySync, feed: Feed) -> ExitCode:
    if feed.pause is not None and feed.pause.covers(sync.today()):
        event = {"feed": feed.name, "outcome": "paused", "message": f"paused {feed.pause.describe()}"}
        sync.notify({**event, "exit": ExitCode.LOADED})
        return ExitCode.LOADED
    if feed.format not in FAMILIES:
        raise CommandError(f"the feed {feed.name} takes {feed.format}, which this version does not know")
    CompletenessRule(sync.settings.export_age_minutes, feed.marker).require_complete(feed.path, sync.now())
    options = Options(sync.settings, wait=sync.wait, notify=notify_steps(sync.notify, feed.name))
    report = load(sync.engine, feed.name, feed.path, family=FAMILIES[feed.format], options=options)
    code, message = choose_exit_code(report), report.message
    days = _count_same_days(sync.engine, feed.name) if KNOWN in report.notices else 0
    if code in GOOD_CODES and days >= sync.settings.stale_days:
        code, message = ExitCode.STALE, f"the export has been the same for {days} days"
    sync.notify({**report.to_json(), "message": message, "exit": code})
    _announce_change(sync, feed, code, message or "loaded", report.run)
    return code


def _report_error(sync: NightlySync, feed: Feed, error: Exception) -> ExitCode:
    """Passes an error to `sync.notify`, announces it, and returns its exit code. A missing export is stale, not
    refused."""
    described = describe_error(error)
    code = choose_error_code(error)
    if code == ExitCode.REFUSED and not feed.path.exists():
        code = ExitCode.STALE
        described = {"outcome": "missing", "message": f"there is no export at {feed.path}"}
    sync.notify({"feed": feed.name, **described, "exit": code})
    print_fault(error)
    message = described.get("message") or f"refused for {described.get('total')} reasons"
    _announce_change(sync, feed, code, str(message))
    return code


def _count_same_days(engine: Engine, feed_name: str) -> int:
    """The number of days since the sync last saw an export of the feed that was not the one before."""
    own = select(func.max(sync_runs.c.started_at)).join(feeds).where(feeds.c.name == feed_name)
    fresh = own.where(sync_runs.c.finished_at.is_not(None), ~sync_runs.c.notices.contains([KNOWN]))
    with engine.connect() as connection:
        days = connection.scalar(select(func.date_part("day", func.now() - fresh.scalar_subquery())))
    return int(days or 0)


def _announce_change(sync: NightlySync, feed: Feed, code: ExitCode, message: str, run: int | None = None) -> None:
    """Announces a problem that the feed did not have last night, or the end of the one that it had."""
    problem = PROBLEMS.get(code)
    # LOCKED says nothing of the feed.
    if problem == feed.alerted or (problem is None and code not in GOOD_CODES):
        return
    with sync.engine.begin() as connection:
        connection.execute(update(feeds).where(feeds.c.name == feed.name).values(alerted=problem))
    send(sync, Announcement(problem or Kind.RECOVERED, feed.name, message, run))


def send(sync: NightlySync, announcement: Announcement) -> None:
    """Sends an announcement, and passes an event to `sync.notify` for each channel that failed."""
    for failure in announce(sync.settings, announcement):
        event: dict[str, Any] = {"step": "announce", **announcement.subject_names, "message": failure}
        sync.notify({**event, "exit": ExitCode.LOADED})
