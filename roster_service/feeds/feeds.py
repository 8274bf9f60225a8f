"""Feeds, the export sources of the roster: as operators add, list and change them.

Each change needs an actor, and is one row of the change log. The removal of a feed is a run of the sync
(`sync_scripts/engine/feed_removal.py`).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date, tzinfo
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert

from roster_service.change_log.actors import Actor, require_role
from roster_service.change_log.changes import State, Subject, Verb, recorded
from roster_service.db.instants import describe_purge, find_today
from roster_service.db.tables import ROSTER_TABLES, feeds, sync_runs
from roster_service.errors import CommandError
from roster_service.feeds.feed_states import (
    REMOVAL,
    FeedState,
    Pause,
    find_feed,
    make_pause,
    read_added_feed,
    read_feed_settings,
    require_feed_name,
    store_pause,
)
from roster_service.feeds.held_runs import HELD
from roster_service.feeds.run_history import TYPES
from roster_service.feeds.run_outcomes import LOADED_OUTCOMES, find_rejected_percent
from roster_service.feeds.scripts import Background, name_folder, read_background, run_script, start_script
from roster_service.feeds.sync_lock import INTERRUPTED, INTERRUPTED_WORDS, RUNNING, find_interrupted, try_sync_lock
from roster_service.settings import Settings

# The limits of a feed that has none of its own, in percent: a good export changes fewer of the records of a type that
# stay, and has fewer rows that are rejected. A feed of which this is not true has limits of its own.
HOLD_CHANGES_PERCENT = 75
HOLD_REJECTED_PERCENT = 5

# Each format has a script `sync_scripts.load_NAME`. A test compares this list with the formats there.
FORMATS = ("oneroster", "clever", "sds")


@dataclass(frozen=True)
class Feed:
    """A feed, and its latest runs. `state`: of `FeedState`; `hold_…`: the limits beyond which a run is held, in percent
    of the records of a type, None for the service's settings; `pause`: the days and the reason, also of one to come;
    `is_paused`: whether it is one of today; `strict`: whether the sync refuses its exports for any deviation; `words`:
    whether it has a mapping of words; `latest_run`, `last_outcome`, `message`: of the latest run, which may still be
    running, None before the first; `last_run`: the end of that run, or its begin if it has none; `rejected_percent`:
    the largest share of the rows of a file that it rejected; `last_good_run`, `age_seconds`: the end of the last run
    after which the roster was that of the export, and the time since; `is_emptied`: whether its removal is the last run
    that changed it, so no export of it is loaded, also once it is taken back; `held_run`, `held_message`: the run that
    waits for a decision, and why; `is_applied`: whether a run that is under way applies it."""

    name: str
    format: str
    path: str | None
    enabled: bool
    state: str
    hold_tombstones_percent: int | None
    hold_changes_percent: int | None
    hold_rejected_percent: int | None
    marker: str | None
    pause: str | None
    is_paused: bool
    strict: bool
    words: bool
    last_run: str | None
    latest_run: int | None
    last_outcome: str | None
    message: str | None
    rejected_percent: float
    last_good_run: str | None
    age_seconds: int | None
    is_emptied: bool
    held_run: int | None
    held_message: str | None
    is_applied: bool

    @property
    def is_running(self) -> bool:
        """Whether a run of it is under way."""
        return self.last_outcome == RUNNING


def _recorded(connection: sa.Connection, actor: Actor, verb: Verb, name: str) -> AbstractContextManager[None]:
    """Records the change of a feed that the block makes."""
    return recorded(connection, actor, verb, Subject.of_feed(name), lambda: read_feed_settings(connection, name))


def add_feed(connection: sa.Connection, actor: Actor, name: str, format_: str, path: Path | None) -> None:
    """Adds a feed. This takes a removed feed back, with the records that are not purged yet. `format_`: of `FORMATS`.
    Raises CommandError for a bad name, and for one that is taken."""
    require_feed_name(name)
    row = {"format": format_, "path": None if path is None else str(path.absolute())}
    anew = row | {"state": FeedState.ADDED, "enabled": True}
    added = upsert(feeds).values(name=name, **anew)
    # The row of a removed feed, and of one that a loader has tried, is taken.
    taken = added.on_conflict_do_update(
        index_elements=[feeds.c.name], set_=anew, where=feeds.c.state != FeedState.ADDED
    )
    with recorded(connection, actor, Verb.FEED_ADD, Subject.of_feed(name), lambda: read_added_feed(connection, name)):
        if connection.execute(taken.returning(feeds.c.id)).one_or_none() is None:
            raise CommandError(f"there is a feed {name} already")


def change_feed(connection: sa.Connection, actor: Actor, name: str, values: Mapping[str, Any]) -> None:
    """Sets columns of a feed. Raises CommandError for an unknown or a removed feed."""
    renewed: dict[str, Any] = {}
    if values.get("strict") or "words" in values:
        # The next run reads everything: lines that were loaded before may have deviations, or newly mapped words.
        renewed = {"last_digest": None, "fingerprinted": False}
    with _recorded(connection, actor, Verb.FEED_SET, name):
        own = feeds.c.id == find_feed(connection, name).id
        connection.execute(sa.update(feeds).where(own).values({**values, **renewed}))


def rename_feed(connection: sa.Connection, actor: Actor, name: str, new: str) -> None:
    """Gives a feed another name. Raises CommandError if the name is taken or bad, if ids of its records have its name,
    and while a sync is under way."""
    require_feed_name(new)
    if not try_sync_lock(connection, "renames a feed"):
        raise CommandError("a sync is under way; rename the feed when it has ended")
    renamed = find_feed(connection, name)

    def read_name() -> State:
        return {"name": connection.scalar(sa.select(feeds.c.name).where(feeds.c.id == renamed.id))}

    with recorded(connection, actor, Verb.FEED_RENAME, Subject.of_feed(name), read_name):
        if connection.scalar(sa.select(sa.exists().where(feeds.c.name == new))):
            raise CommandError(f"there is a feed {new} already, or a run of one")
        _refuse_named_ids(connection, renamed.id, name)
        connection.execute(sa.update(feeds).where(feeds.c.id == renamed.id).values(name=new))


def pause_feed(connection: sa.Connection, actor: Actor, name: str, pause: Pause, today: date) -> None:
    """Sets the pause of a feed. Raises CommandError if there is no such feed, or the pause is over or never begins."""
    if pause.last < max(pause.first, today):
        raise CommandError("the last day of a pause is neither before its first day nor before today")
    with _recorded(connection, actor, Verb.FEED_PAUSE, name):
        store_pause(connection, name, pause)


def resume_feed(connection: sa.Connection, actor: Actor, name: str) -> None:
    """Ends the pause of a feed, also one to come. Raises CommandError if there is no such feed."""
    with _recorded(connection, actor, Verb.FEED_RESUME, name):
        store_pause(connection, name, None)


def check_words(connection: sa.Connection, format_: str, text: str) -> None:
    """Raises CommandError, in the words of the sync, for a mapping of words for which it would refuse each export of a
    format."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        done = run_script(connection, "check_words", format_, file.name)
    if done.returncode != 0:
        raise CommandError(json.loads(done.stdout)["message"] if done.stdout else done.stderr.strip())


def remove_feed(connection: sa.Connection, actor: Actor, name: str, *, now: bool, dry_run: bool = False) -> Any:
    """Removes a feed by the script of the sync, which records it. `now`: delete its records at once. Returns the report
    of the run, as JSON has it. Raises CommandError."""
    options = [option for option, is_set in (("--now", now), ("--dry-run", dry_run)) if is_set]
    done = run_script(connection, "remove_feed", "--actor", actor.to_text(), *options, "--", name)
    if done.returncode != 0:
        raise CommandError(done.stderr.strip() or done.stdout.strip())
    return json.loads(done.stdout)


def start_removal(connection: sa.Connection, actor: Actor, name: str, home: Path, *, now: bool) -> None:
    """Starts what `remove_feed` does, in the background; `read_removal` reads how it ended. `home`: the data folder.
    Raises CommandError if a removal of the feed was started and has not ended."""
    require_role(connection, actor, Verb.FEED_REMOVE.least_role, Verb.FEED_REMOVE)
    options = ("--actor", actor.to_text(), *(["--now"] if now else []), "--", name)
    start_script(connection, home, name_folder(home, "removal", name), "remove_feed", *options)


def read_removal(home: Path, name: str) -> Background | None:
    """Returns the removal of a feed that was started last; None if there was none."""
    return read_background(name_folder(home, "removal", name))


def find_listed(connection: sa.Connection, name: str, zone: tzinfo | None) -> Feed:
    """Returns the feed with this name, also a removed one, as `list_feeds` does."""
    [found] = list_feeds(connection, zone, feeds.c.name == name, without_records=True)
    return found


@dataclass(frozen=True)
class Remains:
    """The records of a removed feed, which are marked as deleted. `purged`: when the purge deletes them, in words; None
    without records."""

    records: int
    purged: str | None

    def describe(self, name: str) -> str:
        """Returns what vendors still get of the feed `name`, and the command that ends it."""
        if self.purged is None:
            return "it has no records, and no vendor gets anything of it"
        records = "its 1 record" if self.records == 1 else f"its {self.records:,} records"
        return (
            f"vendors still get {records} as `tobedeleted`, with all fields that they got before, until the purge "
            f"deletes them, {self.purged}; to delete them now: `roster feed remove {name} --now`"
        )


def find_remains(connection: sa.Connection, name: str, settings: Settings) -> Remains:
    """Returns what vendors still get of a removed feed."""
    own = sa.select(feeds.c.id).where(feeds.c.name == name).scalar_subquery()
    parts = (
        sa.select(sa.func.count().label("count"), sa.func.max(table.c.date_last_modified).label("at")).where(
            table.c.feed_id == own
        )
        for table in ROSTER_TABLES
    )
    both = sa.union_all(*parts).subquery()
    count, at = connection.execute(sa.select(sa.func.sum(both.c.count), sa.func.max(both.c.at))).one()
    if not count:
        return Remains(0, None)
    return Remains(int(count), describe_purge(at, settings.retention_days, settings.time_zone))


def _refuse_named_ids(connection: sa.Connection, feed_id: int, name: str) -> None:
    """Raises CommandError if ids of records begin with the name of their feed (`conversion.py` of the formats): under
    another name the next run would mark these records as deleted and add all of them anew."""
    for table in ROSTER_TABLES:
        named = table.c.sourced_id.startswith(f"{name}:", autoescape=True)
        if connection.scalar(sa.select(sa.exists().where(table.c.feed_id == feed_id, named))):
            raise CommandError(f"the feed {name} keeps its name, because the ids of its {TYPES[table.name]} have it")


def _describe_pause(pause: Pause | None, today: date) -> str | None:
    return None if pause is None or pause.last < today else pause.describe()


def list_default_limits(settings: Settings) -> Mapping[str, int]:
    """Returns the limits of feeds without limits of their own, in percent, by the columns of those."""
    return {
        "hold_tombstones_percent": settings.hold_tombstones_percent,
        "hold_changes_percent": HOLD_CHANGES_PERCENT,
        "hold_rejected_percent": HOLD_REJECTED_PERCENT,
    }


def list_feeds(
    connection: sa.Connection,
    zone: tzinfo | None,
    *conditions: sa.ColumnElement[bool],
    without_records: bool = False,
) -> list[Feed]:
    """Lists the feeds for which all conditions hold, ordered by name: removed ones as long as they have records, or
    also `without_records`. `zone`: of the district, for the days of pauses."""
    today = find_today(zone)
    interrupted = find_interrupted(connection)
    of_feed = sa.select(sa.func.max(sync_runs.c.finished_at)).where(sync_runs.c.feed_id == feeds.c.id)
    of_good = of_feed.where(sync_runs.c.outcome.in_(LOADED_OUTCOMES))
    good = of_good.where(sync_runs.c.source != REMOVAL).scalar_subquery()
    source = of_good.with_only_columns(sync_runs.c.source).order_by(sync_runs.c.id.desc()).limit(1).scalar_subquery()
    newest = of_feed.with_only_columns(sa.func.max(sync_runs.c.id))
    last, held = sync_runs.alias(), sync_runs.alias()
    columns = (
        sa.func.coalesce(last.c.finished_at, last.c.started_at).label("last_run"),
        last.c.id.label("last_id"),
        last.c.outcome.label("last_outcome"),
        last.c.message,
        last.c.approves,
        last.c.files,
        good.label("last_good_run"),
        sa.func.extract("epoch", sa.func.now() - good).label("age"),
        sa.func.coalesce(source == REMOVAL, sa.false()).label("is_emptied"),
        held.c.id.label("held_run"),
        held.c.message.label("held_message"),
    )
    joined = feeds.outerjoin(last, last.c.id == newest.scalar_subquery())
    joined = joined.outerjoin(held, held.c.id == newest.where(sync_runs.c.outcome == HELD).scalar_subquery())
    listed = sa.select(feeds, *columns).select_from(joined).where(*conditions)
    if not without_records:
        has_records = sa.or_(*(sa.exists().where(table.c.feed_id == feeds.c.id) for table in ROSTER_TABLES))
        listed = listed.where(sa.or_(feeds.c.state != FeedState.REMOVED, has_records))
    rows = connection.execute(listed.order_by(feeds.c.name)).all()
    dead = {row.id for row in rows if row.last_outcome == RUNNING and row.last_id in interrupted}
    return [
        Feed(
            name=row.name,
            format=row.format,
            path=row.path,
            enabled=row.enabled,
            state=row.state,
            hold_tombstones_percent=row.hold_tombstones_percent,
            hold_changes_percent=row.hold_changes_percent,
            hold_rejected_percent=row.hold_rejected_percent,
            marker=row.marker,
            pause=_describe_pause(pause := make_pause(row.pause_from, row.pause_until, row.pause_reason), today),
            is_paused=pause is not None and pause.covers(today),
            strict=row.strict,
            words=row.words is not None,
            last_run=row.last_run and row.last_run.isoformat(timespec="seconds"),
            latest_run=row.last_id,
            last_outcome=INTERRUPTED if row.id in dead else row.last_outcome,
            message=INTERRUPTED_WORDS if row.id in dead else row.message,
            rejected_percent=find_rejected_percent(row.files or ()),
            last_good_run=row.last_good_run and row.last_good_run.isoformat(timespec="seconds"),
            age_seconds=None if row.age is None else int(row.age),
            is_emptied=row.is_emptied,
            held_run=row.held_run,
            held_message=row.held_message,
            is_applied=row.last_outcome == RUNNING and row.id not in dead and row.approves == row.held_run is not None,
        )
        for row in rows
    ]
