"""The feeds of the nightly sync: each is loaded when its export is settled, and a change of its state is announced."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import date, timedelta, tzinfo
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from roster_service.accounts.credentials import list_credentials
from roster_service.change_log.actors import find_system_user
from roster_service.db.instants import describe_instant, find_today
from roster_service.db.tables import feeds, sync_runs
from roster_service.errors import CommandError, DatabaseUnavailableError
from roster_service.feeds.exclusions import find_renewal
from roster_service.feeds.feed_conditions import NO_PATH, explain_no_path
from roster_service.feeds.feed_states import FeedState, Pause, make_pause
from roster_service.feeds.held_runs import HELD
from roster_service.feeds.run_outcomes import DONE, OUTCOMES, find_rejected_percent, needs_person
from roster_service.feeds.sync_lock import LockedError, try_sync_lock
from roster_service.settings import Settings
from sync_scripts.applying.writes import TABLES, make_missing_indexes
from sync_scripts.engine import exit_codes
from sync_scripts.engine.exit_codes import ExitCode
from sync_scripts.engine.load import load
from sync_scripts.engine.progress import Notify, notify_steps
from sync_scripts.engine.run import Options
from sync_scripts.engine.run_record import name_error_outcome, record_run, translate_database_errors
from sync_scripts.notifications.announcement import Announcement, AnnouncementKind
from sync_scripts.notifications.channels import announce, list_channels
from sync_scripts.reading.completeness import CompletenessRule, IncompleteExportError
from sync_scripts.reading.registry import FAMILIES

# How often the sync looks at an export that is not settled, before it gives up for the night.
ATTEMPTS = 4
# Days after which a held run that still waits is announced again.
REMIND_DAYS = 3
# The end of a credential is announced so long before it: time to agree with a vendor on a day for the new one.
CREDENTIAL_DAYS = 14
# What was announced of a feed last, and whether it was so long ago.
_ALERT = (
    feeds.c.alerted,
    feeds.c.alerted_message,
    feeds.c.alerted_at,
    feeds.c.alerted_channels,
    # By days: a night may begin some seconds earlier than another.
    (sa.cast(sa.func.now(), sa.Date) - sa.cast(feeds.c.alerted_at, sa.Date) >= REMIND_DAYS).label("is_old"),
)


@dataclass(frozen=True)
class NightlyFeed:
    """A feed that the nightly sync loads."""

    name: str
    format: str
    path: Path
    marker: str | None
    pause: Pause | None


@dataclass(frozen=True)
class NightlySync:
    """What the loads of one nightly sync share. `notify`: for several threads, if `settings.sync_jobs` is more than 1.
    `sleep`, `now`: as in `time`; `today`: the day of the pauses in a time zone. `wait`: as in
    `load.Options`."""

    engine: sa.Engine
    settings: Settings
    notify: Notify
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.time
    today: Callable[[tzinfo | None], date] = find_today
    wait: bool = False


@dataclass(frozen=True)
class _Turn:
    """A feed that waits. `ready_at`: the time before which its export is not looked at again."""

    feed: NightlyFeed
    attempt: int = 1
    ready_at: float = 0.0


_IS_ENABLED = sa.and_(feeds.c.state != FeedState.REMOVED, feeds.c.enabled)


def list_nightly_feeds(engine: sa.Engine) -> list[NightlyFeed]:
    """The enabled feeds that have the path of an export, ordered by name."""
    wanted = sa.select(feeds).where(_IS_ENABLED, feeds.c.path.is_not(None)).order_by(feeds.c.name)
    with engine.connect() as connection:
        return [
            NightlyFeed(
                row.name,
                row.format,
                Path(row.path),
                row.marker,
                make_pause(row.pause_from, row.pause_until, row.pause_reason),
            )
            for row in connection.execute(wanted)
        ]


def load_feeds(sync: NightlySync) -> list[ExitCode]:
    """Loads every feed, `settings.sync_jobs` of them at the same time, and returns the exit code of each. A feed whose
    export may be incomplete goes behind the others, and is tried again, `ATTEMPTS` times in all. Passes one event per
    step, per wait and per feed to `sync.notify`."""
    codes: list[ExitCode] = []
    _announce_pauses(sync)
    found = list_nightly_feeds(sync.engine)
    _report_left_out(sync)
    loaded = {feed.name for feed in found if not _is_paused(sync, feed)}
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
    with _unless_database_is_away():
        _announce_waiting(sync, loaded)
    return codes


@contextlib.contextmanager
def _unless_database_is_away() -> Iterator[None]:
    """Ends the block without an error if the database is away: nothing tells then what is announced already, and the
    next sync announces what is still so."""
    with contextlib.suppress(DatabaseUnavailableError), translate_database_errors():
        yield


def _make_indexes(engine: sa.Engine) -> None:
    """Makes the indexes of a new roster, because the load that makes them must be the only one."""
    with engine.begin() as connection:
        if try_sync_lock(connection, "makes indexes"):
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
            with translate_database_errors():
                code = _load_feed(sync, feed, is_last=attempt == ATTEMPTS)
        except Exception as error:  # noqa: BLE001  (a fault of the program must not stop the other feeds)
            if isinstance(error, IncompleteExportError) and attempt < ATTEMPTS:
                sync.notify({"feed": feed.name, "outcome": "waiting", "message": str(error)})
                waiting.append(_Turn(feed, attempt + 1, sync.now() + error.seconds))
                continue
            code = _report_error(sync, feed, error)
        codes.append(code)


def _announce_pauses(sync: NightlySync) -> None:
    """Announces the pauses of which something is to be said today, also of feeds whose exports somebody uploads."""
    zone = sync.settings.time_zone
    today = sync.today(zone)
    before = _find_latest(today, find_day_before(sync.engine, zone))
    wanted = sa.select(feeds.c.name, feeds.c.pause_from, feeds.c.pause_until, feeds.c.pause_reason).where(_IS_ENABLED)
    with sync.engine.connect() as connection:
        found = {name: make_pause(*columns) for name, *columns in connection.execute(wanted.order_by(feeds.c.name))}
    for name, pause in found.items():
        words = None if pause is None else pause.announce(today, before)
        if words is not None:
            send(sync, Announcement(AnnouncementKind.PAUSE, name, words))


def _is_paused(sync: NightlySync, feed: NightlyFeed) -> bool:
    return feed.pause is not None and feed.pause.covers(sync.today(sync.settings.time_zone))


def _report_left_out(sync: NightlySync) -> None:
    """Passes an event for each feed that is enabled and has no path. It is good: the exports of some are uploaded."""
    without = sa.select(feeds.c.name).where(_IS_ENABLED, feeds.c.path.is_(None)).order_by(feeds.c.name)
    with sync.engine.connect() as connection:
        names = connection.scalars(without).all()
    for name in names:
        event = {"feed": name, "outcome": NO_PATH, "message": explain_no_path(name, "PATH")}
        sync.notify({**event, "exit": ExitCode.LOADED})


def _load_feed(sync: NightlySync, feed: NightlyFeed, *, is_last: bool) -> ExitCode:
    """Loads a feed. `is_last`: an export that is not complete is a run of its own, because nobody looks again."""
    if feed.pause is not None and _is_paused(sync, feed):
        event = {"feed": feed.name, "outcome": "paused", "message": f"paused {feed.pause.describe()}"}
        sync.notify({**event, "exit": ExitCode.LOADED})
        return ExitCode.LOADED
    if feed.format not in FAMILIES:
        with record_run(sync.engine, feed.name, feed.format, str(feed.path), find_system_user(None)):
            raise CommandError(f"the feed {feed.name} takes {feed.format}, which this version does not know")
    rule = CompletenessRule(sync.settings.export_age_minutes, feed.marker)

    def require_complete(path: Path) -> None:
        # The time of now: the load may have waited for another run.
        rule.require_complete(path, sync.now())

    if not is_last:
        require_complete(feed.path)
    options = Options(
        sync.settings,
        keeps_copy=True,
        wait=sync.wait,
        notify=notify_steps(sync.notify, feed.name),
        require_complete=require_complete,
    )
    report = load(sync.engine, feed.name, feed.path, family=FAMILIES[feed.format], options=options)
    code, ended = exit_codes.choose_exit_code(report), report.to_json()
    sync.notify({**ended, "exit": code})
    needs = needs_person(ended["outcome"], find_rejected_percent(ended["files"]), sync.settings.rejected_percent)
    outcome = DONE if report.is_partial and not needs else ended["outcome"]
    _announce_change(sync, feed.name, outcome, ended["message"])
    return code


def _report_error(sync: NightlySync, feed: NightlyFeed, error: Exception) -> ExitCode:
    """Passes an error to `sync.notify`, announces it, and returns its exit code."""
    code, described = exit_codes.choose_error_code(error), exit_codes.describe_error(error)
    sync.notify({"feed": feed.name, **described, "exit": code})
    exit_codes.print_fault(error)
    # Another run of the feed is under way, which says nothing of its export.
    if not isinstance(error, LockedError):
        with _unless_database_is_away():
            _announce_change(sync, feed.name, name_error_outcome(error), str(described["message"]))
    return code


def _announce_change(sync: NightlySync, name: str, outcome: str, message: str | None) -> None:
    """Announces a problem that a feed did not have last night, or the end of the one that it had; a held run again if
    its cause or its size is another, and after `REMIND_DAYS`. A channel that has not taken the announcement of a
    problem, because it failed or was not set up, gets it now."""
    problem = outcome if OUTCOMES[outcome].is_announced else None
    words = message or OUTCOMES[outcome].meaning
    channels = [channel for channel, _ in list_channels(sync.settings)]
    own = feeds.c.name == name
    with sync.engine.begin() as connection:
        # Read now: a person may have discarded a held run while the sync was under way.
        before = connection.execute(sa.select(*_ALERT).where(own)).one()
        run = connection.scalar(sa.select(sa.func.max(sync_runs.c.id)).join(feeds).where(own))
        again = _say_again(before, words, sync.settings.time_zone) if problem == before.alerted else words
        if again is not None:
            reached: list[str] = []
            values = {
                "alerted": problem,
                "alerted_message": words,
                "alerted_at": sa.func.now(),
                "alerted_channels": reached,
            }
            connection.execute(sa.update(feeds).where(own).values(values))
        else:
            reached = list(before.alerted_channels)
    over = [channel for channel in channels if channel not in reached]
    if again is None and (problem is None or not over):
        return
    page = None if run is None else sync.settings.name_run_page(run)
    kind = problem or AnnouncementKind.RECOVERED
    failed = send(sync, Announcement(kind, name, again or words, run, page=page), over)
    reached += [channel for channel in over if channel not in failed]
    with sync.engine.begin() as connection:
        connection.execute(sa.update(feeds).where(own).values(alerted_channels=reached))


def _say_again(before: sa.Row[Any], words: str, zone: tzinfo | None) -> str | None:
    """What is announced of a problem that was announced before, and has the message `words` now; None if nothing is."""
    if before.alerted is None or not OUTCOMES[before.alerted].is_repeated:
        return None
    day = describe_instant(before.alerted_at, zone)
    if words != before.alerted_message:
        return f"{words}. Before, as announced on {day}: {before.alerted_message}"
    return f"{words}. It still waits, as announced on {day}" if before.is_old else None


def _announce_waiting(sync: NightlySync, loaded: Collection[str]) -> None:
    """Announces held runs of the feeds that no night loads, as `_announce_change` does, and the end of their waiting.
    `loaded`: the feeds that this night has loaded, or tried to."""
    waits = sa.and_(sync_runs.c.feed_id == feeds.c.id, sync_runs.c.outcome == HELD)
    held = sa.select(feeds.c.name, sync_runs.c.id, sync_runs.c.message).outerjoin(sync_runs, waits)
    others = sa.and_(feeds.c.state != FeedState.REMOVED, feeds.c.name.not_in(loaded))
    concerned = sa.or_(sync_runs.c.id.is_not(None), feeds.c.alerted == HELD)
    with sync.engine.connect() as connection:
        rows = connection.execute(held.where(others, concerned).order_by(feeds.c.name)).all()
    for row in rows:
        _announce_change(sync, row.name, DONE if row.id is None else HELD, row.message)


def send(sync: NightlySync, announcement: Announcement, over: Collection[str] | None = None) -> Collection[str]:
    """Sends an announcement over every channel, or those named in `over`, and passes an event to `sync.notify` for each
    that failed. Returns their names."""
    failures = announce(sync.settings, announcement, over)
    for failure in failures.values():
        event: dict[str, Any] = {"step": "announce", **announcement.subject_names, "message": failure}
        sync.notify({**event, "exit": ExitCode.LOADED})
    return failures.keys()


def announce_ends(sync: NightlySync, day: date, before: date | None) -> int:
    """Announces the credentials of which something is to be said on a day, in UTC. `before`: the day of the last sync
    before this one, None if nobody knows it. Returns their number."""
    with sync.engine.connect() as connection:
        found = list_credentials(connection)
    latest = _find_latest(day, before)
    announced = [(item.vendor, item.announce(day, CREDENTIAL_DAYS, latest)) for item in found]
    for vendor, words in announced:
        if words is not None:
            send(sync, Announcement(AnnouncementKind.CREDENTIAL, None, words, vendor=vendor))
    return sum(words is not None for _, words in announced)


def find_day_before(engine: sa.Engine, zone: tzinfo | None) -> date | None:
    """The day, in a time zone, of the last sync before this one; None if the database does not know it."""
    with engine.connect() as connection:
        # Each sync renews the statistics, after all that it announces.
        renewed = find_renewal(connection)
    return None if renewed is None else renewed.astimezone(zone).date()


def _find_latest(day: date, before: date | None) -> date:
    """The day before a day, or that of the last sync if it is older: nobody has said since what was to be said. A
    second sync of a day says the same, because the one before may have been none, but an erasure."""
    yesterday = day - timedelta(days=1)
    return yesterday if before is None else min(before, yesterday)
