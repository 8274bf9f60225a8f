"""The record of a run: its feed, its row in sync_runs from start to end, and the kept export of a held run."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg2
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.exc import DBAPIError, OperationalError

from roster_service.change_log.actors import Actor
from roster_service.change_log.changes import Subject, Verb, recorded
from roster_service.db.tables import feeds, roster_state, sync_rejections, sync_runs
from roster_service.errors import CommandError, DatabaseUnavailableError, RosterServiceError, StorageError, name_fault
from roster_service.feeds.feed_states import FeedState, find_feed, read_added_feed
from roster_service.feeds.held_runs import APPROVED, HELD, close_held, drop_export, keep_export, read_outcome
from roster_service.feeds.run_history import PURGED
from roster_service.feeds.run_outcomes import DONE, FAILED, INCOMPLETE, MISSING, REFUSED, REPLACED
from roster_service.feeds.sync_lock import INTERRUPTED, RUNNING
from roster_service.feeds.undo import COPIES, FOLDER, find_undone_by, forget_copies
from roster_service.roster.stamps import NOW, make_next_stamp
from roster_service.settings import Settings
from sync_scripts.engine.report import Report
from sync_scripts.reading.completeness import IncompleteExportError, MissingExportError, refuse_changed
from sync_scripts.reading.registry import Family
from sync_scripts.reading.rejections import NO_FINDINGS, Findings, RefusedExportError
from sync_scripts.staging.line_hashes import digest_export

NOT_HELD = "there is no held run {} of this feed"
# The notice about an export that a run skips.
KNOWN = "every file is as it was when it was last loaded"
# SQLSTATE classes of connections, rights, locks, limits and disks: messages of these classes quote no rows.
OF_SERVER = ("08", "25", "28", "3D", "40", "42501", "53", "54", "55", "57", "58")
NO_ROOM = "53100"
# The outcome of a run that an error ends, the first that fits; any other error is a failure.
OUTCOMES_BY_ERROR: tuple[tuple[type[BaseException], str], ...] = (
    (MissingExportError, MISSING),
    (IncompleteExportError, INCOMPLETE),
    (RefusedExportError, REFUSED),
    (CommandError, REFUSED),
)
# The outcomes of runs that have read no export.
UNREAD = (RUNNING, INTERRUPTED, MISSING, INCOMPLETE, FAILED)


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


def begin_run(
    connection: sa.Connection, feed_id: int, family: str, source: str, actor: Actor | None = None, **about: int | None
) -> int:
    """Adds the row of a run that starts, and returns its number. `family`: the family of formats; the report
    replaces it by the format itself at the end of the run; `about`: the run that it approves or undoes."""
    begun: dict[str, Any] = {
        "started_at": NOW,
        "outcome": RUNNING,
        "counts": {},
        "seconds": {},
        "actor": actor and actor.name,
    }
    row = sa.insert(sync_runs).values(feed_id=feed_id, format=family, source=source, **begun, **about)
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
    """Ends the held runs of a feed, because the newer run `by` replaces them. Returns their kept exports."""
    older = sa.and_(sync_runs.c.feed_id == feed_id, sync_runs.c.id != by)
    return close_held(connection, older, REPLACED, f"replaced by run {by}", ends_alert=False)


@dataclass(frozen=True)
class RunRecord:
    """The row of a run that is under way: its number, its feed, and whether the feed exists only once a run of it is
    applied."""

    number: int
    feed_id: int
    is_new: bool


@dataclass(frozen=True)
class Approval:
    """An operator's approval of a held run: of the changes that the report of the run `run` showed."""

    run: int
    actor: Actor


@contextlib.contextmanager
def translate_database_errors() -> Iterator[None]:
    """Raises DatabaseUnavailableError for an error of the database, and StorageError where it has no room left: a later
    try does not help. The message contains the server's primary message only for errors of the server itself, because
    any other message may quote a row."""
    try:
        yield
    except (DBAPIError, psycopg2.Error) as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        state = (cause.pgcode or "") if isinstance(cause, psycopg2.Error) else ""
        message = (
            cause.diag.message_primary if isinstance(cause, psycopg2.Error) and state.startswith(OF_SERVER) else None
        )
        if state == NO_ROOM:
            raise StorageError(f"the disk of the database is full: {message}") from None
        if isinstance(error, DBAPIError) and error.connection_invalidated:
            message = message or "it ended the connection; its log has the reason"
        if isinstance(error, OperationalError) and error.statement is None and not state:
            # Of a connection that could not be made: the words of libpq.
            message = message or str(cause).strip().partition("\n")[0]
        message = message or f"{type(cause).__name__} {state}".strip()
        raise DatabaseUnavailableError(f"the database gave up: {message}") from None


@contextlib.contextmanager
def record_run(
    engine: sa.Engine, feed_name: str, family: str, source: str, actor: Actor, **about: int | None
) -> Iterator[RunRecord]:
    """Adds the record of a run, and the feed if it is new. An error that the block raises becomes the end of the run in
    its row, unless the run has ended already. `source`: what the run calls its export; `actor`: who loads it; `about`:
    as for `begin_run`."""
    with engine.begin() as connection:
        feed_id, is_new = find_or_add_feed(connection, feed_name, family)
        number = begin_run(connection, feed_id, family, source, actor, **about)
    with record_errors(engine, number):
        yield RunRecord(number, feed_id, is_new)


@contextlib.contextmanager
def record_errors(engine: sa.Engine, number: int) -> Iterator[None]:
    """Writes an error that the block raises into the row of the run, as its end."""
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        # If this fails too, the database is not reachable, and only the exit code reports the error.
        with contextlib.suppress(DBAPIError), engine.begin() as connection:
            _record_error(connection, number, error)
        raise


def _record_error(connection: sa.Connection, number: int, error: BaseException) -> None:
    findings = error.findings if isinstance(error, RefusedExportError) else NO_FINDINGS
    ended = {"outcome": name_error_outcome(error), "message": describe_cause(error), "rejected": findings.total}
    end_run(connection, number, findings, **ended, stamp=None)


def name_error_outcome(error: BaseException) -> str:
    """The outcome of a run that an error ends."""
    return next((outcome for kind, outcome in OUTCOMES_BY_ERROR if isinstance(error, kind)), FAILED)


def describe_cause(error: BaseException) -> str:
    """The cause of an error in one sentence. It quotes no value of an export: of a fault of the program it has only
    the name, because the message may quote a row."""
    if isinstance(error, MissingExportError):
        return error.findings.first[0].reason
    if isinstance(error, RefusedExportError):
        return error.findings.summarize()
    return str(error) if isinstance(error, RosterServiceError) else name_fault(error)


def record_end(
    connection: sa.Connection,
    run: RunRecord,
    report: Report,
    approval: Approval | None,
    *,
    actor: Actor,
    allow_mass_delete: bool,
    undoes: int | None,
) -> tuple[Report, list[str]]:
    """Records the end of a successful run, in the run's own transaction. Returns its report, and the kept exports of
    held runs that are no longer needed. `actor`: of the change log, for a feed that the run adds, and for changes that
    `allow_mass_delete` exempts from holding."""
    approved = [] if approval is None else _approve(connection, run, report, approval)
    is_exempt = allow_mass_delete and report.outcome == DONE
    with (
        _record_exemption(connection, actor, run, report) if is_exempt else contextlib.nullcontext(),
        contextlib.nullcontext() if undoes is None else _record_undo(connection, actor, undoes, report),
    ):
        end_run(connection, run.number, report.findings, **report.to_row())
    if run.is_new:
        _add_feed(connection, actor, run.feed_id, report.feed)
    superseded = supersede(connection, run.feed_id, run.number)
    return dataclasses.replace(report, run=run.number), approved + superseded


def _record_exemption(
    connection: sa.Connection, actor: Actor, run: RunRecord, report: Report
) -> contextlib.AbstractContextManager[None]:
    subject = Subject.of_run(run.number, report.feed)
    return recorded(
        connection, actor, Verb.SYNC_ALLOW_MASS_DELETE, subject, lambda: read_outcome(connection, run.number)
    )


def _record_undo(
    connection: sa.Connection, actor: Actor, undone: int, report: Report
) -> contextlib.AbstractContextManager[None]:
    subject = Subject.of_run(undone, report.feed)
    return recorded(
        connection, actor, Verb.SYNC_UNDO, subject, lambda: {"undone_by": find_undone_by(connection, undone)}
    )


def keep_for_undo(
    connection: sa.Connection, run: RunRecord, report: Report, export: HeldExport, settings: Settings
) -> tuple[Report, list[str]]:
    """Copies the export of a run that has changed the roster into the data folder, unless the settings keep no values
    of records. Returns the report, and the copies of earlier runs, which the caller deletes after the commit. A copy
    that cannot be made is no reason to load nothing: then the report has a notice that the next run cannot be taken
    back."""
    if not settings.change_days:
        return report, []
    try:
        kept = str(keep_export(export.path, settings.home, run.number, FOLDER))
    except StorageError as error:
        noted = dataclasses.replace(report, notices=(*report.notices, f"the next run cannot be taken back: {error}"))
        row = sa.update(sync_runs).where(sync_runs.c.id == run.number)
        connection.execute(row.values(notices=list(noted.notices)))
        return noted, []
    own = sync_runs.c.feed_id == run.feed_id
    latest = sa.select(sync_runs.c.id).where(own, sync_runs.c.stamp.is_not(None), sync_runs.c.id < run.number)
    before = latest.order_by(sync_runs.c.id.desc()).limit(COPIES - 1)
    earlier = forget_copies(connection, own, sync_runs.c.id.not_in(before), sync_runs.c.id != run.number)
    values = {"kept_export": kept, "kept_digest": export.digest}
    connection.execute(sa.update(sync_runs).where(sync_runs.c.id == run.number).values(values))
    return report, earlier


def _add_feed(connection: sa.Connection, actor: Actor, feed_id: int, name: str) -> None:
    subject = Subject.of_feed(name)
    with recorded(connection, actor, Verb.FEED_ADD, subject, lambda: read_added_feed(connection, name)):
        connection.execute(sa.update(feeds).where(feeds.c.id == feed_id).values(state=FeedState.ADDED))


def _approve(connection: sa.Connection, run: RunRecord, report: Report, approval: Approval) -> list[str]:
    """Marks a held run as approved. Returns its kept export. Raises CommandError if the run is no longer held or
    belongs to another feed."""
    subject = Subject.of_run(approval.run, report.feed)
    with recorded(
        connection, approval.actor, Verb.SYNC_APPROVE, subject, lambda: read_outcome(connection, approval.run)
    ):
        own = sa.and_(sync_runs.c.feed_id == run.feed_id, sync_runs.c.id == approval.run)
        kept = close_held(connection, own, APPROVED, "approved by an operator")
        if not kept:
            raise CommandError(NOT_HELD.format(approval.run))
        return kept


@dataclass(frozen=True)
class HeldExport:
    """The export of a held run: its path, its family, and the digest of the bytes that the run read."""

    path: Path
    family: Family
    digest: bytes | None


@contextlib.contextmanager
def record_hold(
    connection: sa.Connection, run: RunRecord, report: Report, export: HeldExport, home: Path
) -> Iterator[tuple[Report, list[str]]]:
    """Records that a run is held, and copies its export to the data folder `home`. Yields its report, and the kept
    exports of older held runs, which it supersedes, for the block that commits; the copy is deleted if it fails. Raises
    IncompleteExportError if the copy differs from the export that the run read."""
    # Few runs are held, so the copy comes after the reading. The digest shows whether the export was replaced since.
    kept = str(keep_export(export.path, home, run.number))
    try:
        if digest_export(Path(kept), export.family) != export.digest:
            raise refuse_changed(export.path)
        held = {**report.to_row(), "kept_export": kept, "kept_digest": export.digest}
        end_run(connection, run.number, report.findings, **held)
        superseded = supersede(connection, run.feed_id, run.number)
        yield dataclasses.replace(report, run=run.number), superseded
    except BaseException:
        drop_export(kept, home)
        raise
