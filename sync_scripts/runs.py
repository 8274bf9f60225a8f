"""A run in the database: the lock that keeps runs apart, its feed, its stamp, and the rows that remember it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, func, insert, select, text, type_coerce, update
from sqlalchemy.dialects.postgresql import INTERVAL
from sqlalchemy.dialects.postgresql import insert as insert_or_skip

from roster_service.db.held import HELD, close_held
from roster_service.db.tables import Stamp, feeds, roster_state, sync_refusals, sync_runs
from roster_service.errors import CommandError, RosterServiceError
from sync_scripts.refusals import Findings

# Two numbers, as pg_locks shows them: "Rost", "sync".
LOCK_CLASS, LOCK_OBJECT = 0x526F7374, 0x73796E63
APPLICATION_NAME = "roster sync: "
FEED_NAME_LENGTH = 63
# Among the counts of a type: the records that the purge after the run removed.
PURGED = "purged"
NOW = func.date_trunc("milliseconds", func.clock_timestamp())


class LockedError(RosterServiceError):
    """Another run is writing the roster."""


def take_lock(connection: Connection, feed_name: str) -> None:
    """Keeps every other run out until the transaction ends: stamps then become visible in the order in which they are
    given. Raises LockedError, naming the other run, where one is under way."""
    connection.execute(select(func.set_config("application_name", APPLICATION_NAME + feed_name, True)))
    key = {"class": LOCK_CLASS, "object": LOCK_OBJECT}
    if connection.scalar(text("SELECT pg_try_advisory_xact_lock(:class, :object)"), key):
        return
    holder = connection.execute(
        text(
            "SELECT a.application_name, a.pid, to_char(a.xact_start, 'HH24:MI:SS') FROM pg_locks l "
            "JOIN pg_stat_activity a USING (pid) WHERE l.locktype = 'advisory' AND l.granted AND l.classid = :class "
            "AND l.objid = :object AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        ),
        key,
    ).first()
    who = (
        "another sync" if holder is None else f"another sync ({holder[0]}, process {holder[1]}, since {holder[2]} UTC)"
    )
    raise LockedError(f"{who} is under way; try again when it is done")


def require_feed_name(name: str) -> None:
    """Raises CommandError for a name that no feed can have."""
    if not name.strip() or len(name) > FEED_NAME_LENGTH or not name.isprintable() or name != name.strip():
        raise CommandError(f"a feed's name has 1 to {FEED_NAME_LENGTH} printable characters, without spaces around it")


def open_feed(connection: Connection, name: str, family: str) -> tuple[int, bool]:
    """(id of the feed, whether it was made just now). Raises CommandError for a feed of another family of formats."""
    row = insert_or_skip(feeds).values(name=name, format=family).on_conflict_do_nothing().returning(feeds.c.id)
    made: int | None = connection.scalar(row)
    if made is not None:
        return made, True
    found = connection.execute(select(feeds.c.id, feeds.c.format).where(feeds.c.name == name)).one()
    if found.format != family:
        raise CommandError(f"the feed {name} takes {found.format}, not {family}")
    return found.id, False


def next_stamp(connection: Connection) -> datetime:
    """The stamp of this run's changes: now, but always later than any stamp that was given, whatever the clock says."""
    later = roster_state.c.as_of + text("interval '1 millisecond'")
    stamp: datetime = connection.execute(select(func.greatest(NOW, later, type_=Stamp))).scalar_one()
    return stamp


def advance_state(connection: Connection, stamp: datetime) -> int:
    """A new revision of the roster, as of `stamp`; returns its number."""
    changed = update(roster_state).values(revision=roster_state.c.revision + 1, as_of=stamp)
    revision: int = connection.execute(changed.returning(roster_state.c.revision)).scalar_one()
    return revision


def record_run(connection: Connection, findings: Findings, **values: Any) -> int:
    """Adds the row of a run to sync_runs, and what was refused; `values`: its columns but the id and the end. Returns
    its id."""
    row = insert(sync_runs).values(finished_at=NOW, **values).returning(sync_runs.c.id)
    identifier: int = connection.execute(row).scalar_one()
    if findings:
        told = [refusal.to_json() for refusal in findings.first]
        connection.execute(
            insert(sync_refusals),
            [
                {"run_id": identifier, "number": number, "header": it.pop("column"), **it}
                for number, it in enumerate(told, 1)
            ],
        )
    return identifier


def record_purge(connection: Connection, feed_id: int, purged: Mapping[str, int]) -> None:
    """Adds what was purged of a feed, by type, to the counts of its latest run. A held run has not been; where there
    is no other, nothing is remembered."""
    latest = (
        select(sync_runs.c.id, sync_runs.c.counts)
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
    connection.execute(update(sync_runs).where(sync_runs.c.id == row.id).values(counts=counts))


def set_kept_export(connection: Connection, run_id: int, path: str) -> None:
    """Remembers where the export of a held run is kept."""
    connection.execute(update(sync_runs).where(sync_runs.c.id == run_id).values(kept_export=path))


def seconds_ago(seconds: float) -> ColumnElement[datetime]:
    """An instant of the past, by the database's clock."""
    return NOW - type_coerce(func.make_interval(0, 0, 0, 0, 0, 0, seconds), INTERVAL)


def supersede(connection: Connection, feed_id: int, by: int) -> list[str]:
    """Discards the held runs of a feed: a newer export has said how the roster is. Returns the exports that were kept
    for them."""
    older = and_(sync_runs.c.feed_id == feed_id, sync_runs.c.id != by)
    return close_held(connection, older, "discarded", f"superseded by run {by}")


def approve(connection: Connection, feed_id: int, run_id: int) -> list[str]:
    """Marks a held run as approved. Returns the export that was kept for it. Raises CommandError where the run is not
    held any more, or another feed's."""
    own = and_(sync_runs.c.feed_id == feed_id, sync_runs.c.id == run_id)
    kept = close_held(connection, own, "approved", "approved by an operator")
    if not kept:
        raise CommandError(f"there is no held run {run_id} of this feed")
    return kept
