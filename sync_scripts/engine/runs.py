"""Runs in the database: the lock that allows one run of a feed at a time, the feed, the stamp, and the rows of
sync_runs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.exc import SQLAlchemyError

from roster_service.change_log.actors import Actor
from roster_service.db.tables import feeds, roster_state, sync_rejections, sync_runs
from roster_service.errors import CommandError, RosterServiceError
from roster_service.feeds.feed_states import FeedState, find_feed
from roster_service.feeds.held_runs import APPROVED, HELD, close_held
from roster_service.feeds.run_outcomes import FAILED, INCOMPLETE, MISSING
from roster_service.feeds.sync_lock import (
    INTERRUPTED,
    INTERRUPTED_WORDS,
    RUNNING,
    find_lock_holder,
    name_holder,
    name_session,
    release_feed_lock,
    try_feed_lock,
)
from roster_service.roster.stamps import NOW, make_next_stamp
from sync_scripts.engine.progress import Observer
from sync_scripts.reading.rejections import Findings

# The key in the counts of a type for the records that the purge after the run removed.
PURGED = "purged"
NOT_HELD = "there is no held run {} of this feed"
# The notice about an export that a run skips.
KNOWN = "every file is as it was when it was last loaded"
# The outcomes of runs that have read no export.
UNREAD = (RUNNING, INTERRUPTED, MISSING, INCOMPLETE, FAILED)

# How often a run looks whether the lock that it waits for is free.
WAIT_SECONDS = 0.5


class LockedError(RosterServiceError):
    """Another run holds a lock that this one needs."""


@contextmanager
def hold_lock(connection: sa.Connection, feed_name: str, *, wait: bool = False, alone: bool = False) -> Iterator[None]:
    """Holds the lock of a feed and a share of the roster's until the block ends, over all transactions of the
    connection. `alone`: holds the whole lock of the roster, so that no other feed has a run meanwhile. While another
    run holds one of them, waits for its end (`wait`), or raises LockedError, which names the other run.

    The locks belong to the database session, so PostgreSQL releases them when the process ends in any way. The holder
    knows that no other run of the feed is under way, so it marks runs that still have the outcome RUNNING as
    interrupted.
    """
    with connection.begin():
        name_session(connection, feed_name, None)
    while not _try_lock(connection, feed_name, alone=alone, wait=wait):
        time.sleep(WAIT_SECONDS)
    try:
        with connection.begin():
            feed_id = sa.select(feeds.c.id).where(feeds.c.name == feed_name).scalar_subquery()
            found = sa.update(sync_runs).where(sync_runs.c.feed_id == feed_id, sync_runs.c.outcome == RUNNING)
            connection.execute(found.values(outcome=INTERRUPTED, message=INTERRUPTED_WORDS, stamp=None))
        yield
    finally:
        _release_lock(connection)


def show_steps(connection: sa.Connection, feed_name: str, notify: Observer) -> Observer:
    """The function for a stopwatch that shows each step in the name of the session, and passes all events on."""

    def observe(event: Mapping[str, Any]) -> None:
        if event.get("part") == 0.0:
            name_session(connection, feed_name, event["step"])
        notify(event)

    return observe


def _try_lock(connection: sa.Connection, feed_name: str, *, alone: bool, wait: bool) -> bool:
    with connection.begin():
        if try_feed_lock(connection, feed_name, alone=alone):
            return True
        if not wait:
            holder = name_holder(find_lock_holder(connection, feed_name))
            raise LockedError(f"{holder} is under way; try again when it is done, or wait for it with --wait")
    return False


def _release_lock(connection: sa.Connection) -> None:
    try:
        with connection.begin():
            release_feed_lock(connection)
            connection.execute(sa.text("RESET application_name"))
    except SQLAlchemyError:
        # PostgreSQL releases the locks with the session, so close the session.
        connection.invalidate()


def find_or_add_feed(connection: sa.Connection, name: str, family: str) -> tuple[int, bool]:
    """(id of the feed, whether it exists only once a run of it is applied). Raises CommandError for a removed feed, and
    for one of another family of formats."""
    row = upsert(feeds).values(name=name, format=family, state=FeedState.TRIED)
    again = row.on_conflict_do_update(
        index_elements=[feeds.c.name], set_={"format": family}, where=feeds.c.state == FeedState.TRIED
    )
    tried: int | None = connection.scalar(again.returning(feeds.c.id))
    if tried is not None:
        return tried, True
    found = find_feed(connection, name)
    if found.format != family:
        raise CommandError(f"the feed {name} takes {found.format}, not {family}")
    return found.id, False


def take_stamp(engine: sa.Engine, run: int) -> datetime:
    """The stamp of a run's changes: now, but later than all announced stamps, even if the clock went back.

    Stored and committed in the row of the run before the run writes any record. So a run that announces a later stamp
    first knows that changes with this one are to come, and shows no consumer an instant beyond it.
    """
    with engine.begin() as connection:
        # The lock of the roster: without it, a run could announce a later stamp between these statements.
        connection.execute(sa.select(roster_state.c.revision).with_for_update())
        stamp = make_next_stamp(connection)
        connection.execute(sa.update(sync_runs).where(sync_runs.c.id == run).values(stamp=stamp))
    return stamp


def begin_run(connection: sa.Connection, feed_id: int, family: str, source: str, actor: Actor | None = None) -> int:
    """Adds the row of a run that starts, and returns its number. `family`: the family of formats; the report
    replaces it by the format itself at the end of the run."""
    begun: dict[str, Any] = {
        "started_at": NOW,
        "outcome": RUNNING,
        "counts": {},
        "seconds": {},
        "actor": actor and actor.name,
    }
    row = sa.insert(sync_runs).values(feed_id=feed_id, format=family, source=source, **begun)
    number: int = connection.execute(row.returning(sync_runs.c.id)).scalar_one()
    return number


def end_run(connection: sa.Connection, number: int, findings: Findings, **values: Any) -> None:
    """Writes the end of a run and its rejections. `values`: columns of sync_runs. A run that has already ended stays as
    it is; a run marked as interrupted counts as open, because another run marks it so if its connection died."""
    open_ended = sync_runs.c.outcome.in_((RUNNING, INTERRUPTED))
    row = sa.update(sync_runs).where(sync_runs.c.id == number, open_ended)
    causes = [cause.to_json() for cause in findings.causes]
    ended = connection.execute(row.values(finished_at=NOW, causes=causes, **values)).rowcount
    if ended and findings:
        kept = [rejection.to_row() for rejection in findings.first]
        connection.execute(
            sa.insert(sync_rejections),
            [
                {"run_id": number, "number": index, "header": row.pop("column"), **row}
                for index, row in enumerate(kept, 1)
            ],
        )


def count_same_days(connection: sa.Connection, feed_id: int) -> int:
    """The number of days since the sync last read an export of the feed that was not the one before."""
    fresh = sa.select(sa.func.max(sync_runs.c.started_at)).where(
        sync_runs.c.feed_id == feed_id, sync_runs.c.outcome.not_in(UNREAD), ~sync_runs.c.notices.contains([KNOWN])
    )
    return int(connection.scalar(sa.select(sa.func.date_part("day", sa.func.now() - fresh.scalar_subquery()))) or 0)


def record_purge(connection: sa.Connection, feed_id: int, purged: Mapping[str, int]) -> None:
    """Adds the numbers of purged records of a feed, by type, to the counts of its latest run. A held run does not
    count, because it changed nothing; without another run the numbers are not stored."""
    latest = (
        sa.select(sync_runs.c.id, sync_runs.c.counts)
        .where(sync_runs.c.feed_id == feed_id, sync_runs.c.outcome != HELD)
        .order_by(sync_runs.c.id.desc())
        .limit(1)
    )
    row = connection.execute(latest).one_or_none()
    if row is None:
        return
    counts = dict(row.counts)
    for name, number in purged.items():
        count = counts.get(name, {})
        counts[name] = {**count, PURGED: count.get(PURGED, 0) + number}
    connection.execute(sa.update(sync_runs).where(sync_runs.c.id == row.id).values(counts=counts))


def supersede(connection: sa.Connection, feed_id: int, by: int) -> list[str]:
    """Discards the held runs of a feed, because the newer run `by` supersedes them. Returns their kept exports."""
    older = sa.and_(sync_runs.c.feed_id == feed_id, sync_runs.c.id != by)
    return close_held(connection, older, "discarded", f"superseded by run {by}", ends_alert=False)


def approve(connection: sa.Connection, feed_id: int, run_id: int) -> list[str]:
    """Marks a held run as approved. Returns its kept export. Raises CommandError if the run is no longer held or
    belongs to another feed."""
    own = sa.and_(sync_runs.c.feed_id == feed_id, sync_runs.c.id == run_id)
    kept = close_held(connection, own, APPROVED, "approved by an operator")
    if not kept:
        raise CommandError(NOT_HELD.format(run_id))
    return kept
