"""Taking a run back: a load of the export before it, of which the loads of a feed keep a copy for that.

The load is like any other, with stamps of its own, so consumers of deltas follow. Only bulk exports are kept, the
latest two of a feed, for as many days as the changes of records.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from roster_service.change_log.actors import Actor, require_role
from roster_service.change_log.changes import Verb
from roster_service.db.tables import disclosures, feeds, sync_runs, vendors, visible_feeds
from roster_service.errors import CommandError
from roster_service.feeds.held_runs import APPROVED, is_there, locate_export
from roster_service.feeds.held_runs import FOLDER as HELD_FOLDER
from roster_service.feeds.run_history import ABSENT, find_run_under_way, list_runs_under_way
from roster_service.feeds.run_outcomes import LOADED_OUTCOMES
from roster_service.feeds.scripts import Background, name_folder, read_background, run_script, start_script

FOLDER = "loaded"
# Two copies: of the export that is loaded, and of the one before.
COPIES = 2
_IS_KEPT = sa.and_(sync_runs.c.outcome.in_(LOADED_OUTCOMES), sync_runs.c.kept_export.is_not(None))


@dataclass(frozen=True)
class Undo:
    """What taking a run back would do. `before`: the run whose export is loaded again; `why_not`: why it cannot be
    done, one sentence; `readers`: the vendors that have read records since and see the feed; `bars`: whether the export
    is then held if it comes again."""

    before: int | None
    why_not: str | None
    readers: Sequence[str]
    bars: bool


@dataclass(frozen=True)
class _Found:
    feed: sa.Row[Any]
    run: sa.Row[Any]
    before: sa.Row[Any] | None
    why_not: str | None


def read_undo(connection: sa.Connection, run: int, home: Path) -> Undo:
    """Returns what taking a run back would do. `home`: the data folder. Raises CommandError if there is no such run."""
    found = _find(connection, run, home)
    read_since = sa.select(disclosures.c.vendor_id).where(disclosures.c.last_at >= found.run.finished_at)
    sees = sa.select(visible_feeds.c.vendor_id).where(visible_feeds.c.feed_id == found.feed.id)
    readers = sa.select(vendors.c.name).where(vendors.c.id.in_(read_since), vendors.c.id.in_(sees))
    return Undo(
        None if found.before is None else found.before.id,
        found.why_not,
        connection.scalars(readers.order_by(vendors.c.name)).all() if found.run.finished_at else (),
        found.run.kept_digest is not None,
    )


def require_undo(connection: sa.Connection, run: int, home: Path) -> tuple[int, bytes]:
    """Returns the feed of a run, and the digest of the export that takes it back. `home`: the data folder. Raises
    CommandError for a run that cannot be taken back (any more)."""
    found = _find(connection, run, home)
    if found.before is None or found.why_not is not None:
        raise CommandError(f"the run {run} cannot be taken back: {found.why_not}")
    return found.feed.id, bytes(found.before.kept_digest)


def undo_run(
    connection: sa.Connection, actor: Actor, run: int, home: Path, *, as_json: bool, has_named: bool
) -> subprocess.CompletedProcess[str]:
    """Takes a run back, by the loader, which records it. Returns the output of the loader. `home`: the data folder;
    `has_named`: the operator has said which ids the excluded and the kept people have then. Raises CommandError for a
    run that cannot be taken back."""
    script, *options = _prepare(connection, actor, run, home, has_named=has_named)
    done = run_script(connection, script, *(["--json"] if as_json else []), *options)
    if find_undone_by(connection, run) is None:
        raise CommandError(f"the run {run} was not taken back:\n{done.stderr or done.stdout}")
    return done


def start_undo(connection: sa.Connection, actor: Actor, run: int, home: Path) -> None:
    """Starts what `undo_run` does, in the background; `read_started` tells how it ended. `home`: the data folder.
    Raises CommandError as `undo_run`, and if it was started and has not ended."""
    script, *options = _prepare(connection, actor, run, home, has_named=False)
    start_script(connection, home, name_folder(home, "undo", str(run)), script, "--json", *options)


def read_started(home: Path, run: int) -> Background | None:
    """Returns the undo of a run that was started last; None if there was none."""
    return read_background(name_folder(home, "undo", str(run)))


def find_undoing(connection: sa.Connection, run: int) -> int | None:
    """Returns the number of the run that takes a run back now; None if none does."""
    return find_run_under_way(connection, sync_runs.c.undoes == run)


def find_undone_by(connection: sa.Connection, run: int) -> int | None:
    """Returns the number of the run that has taken a run back; None if none has."""
    undone = sa.select(sync_runs.c.id).where(sync_runs.c.undoes == run, sync_runs.c.outcome.in_(LOADED_OUTCOMES))
    return connection.scalar(undone.limit(1))


def find_applied_by(connection: sa.Connection, run: int) -> int | None:
    """Returns the number of the run that has applied a held run; None if none has."""
    applied = sa.select(sync_runs.c.id).where(sync_runs.c.approves == run, sync_runs.c.outcome.in_(LOADED_OUTCOMES))
    return connection.scalar(applied.limit(1))


def find_reload(connection: sa.Connection, run: int) -> int | None:
    """Returns the number of the last run that has loaded the export of this run again; None if none has, or if the
    digest of the export is not known. An export that was taken back, is known and was not loaded again is held."""
    own = connection.execute(sa.select(sync_runs).where(sync_runs.c.id == run)).one()
    last = None if own.kept_digest is None else _find_last_load(connection, own.feed_id, own.kept_digest)
    return last if last is not None and last > run else None


def find_undone(connection: sa.Connection, feed_id: int, digest: bytes) -> str | None:
    """Returns a sentence if an export, by its digest, is one that was loaded and taken back since; else None."""
    last = _find_last_load(connection, feed_id, digest)
    by = None if last is None else find_undone_by(connection, last)
    return None if by is None else f"the export is that of run {last}, which run {by} has taken back"


def _find_last_load(connection: sa.Connection, feed_id: int, digest: bytes) -> int | None:
    """The number of the last run that has loaded an export, by its digest."""
    same = (sync_runs.c.feed_id == feed_id, sync_runs.c.kept_digest == digest)
    last: int | None = connection.scalar(
        sa.select(sa.func.max(sync_runs.c.id)).where(*same, sync_runs.c.outcome.in_(LOADED_OUTCOMES))
    )
    return last


def forget_copies(connection: sa.Connection, *which: sa.ColumnElement[bool]) -> list[str]:
    """Forgets the copies of the exports of these runs, and returns their paths, which the caller deletes after the
    commit."""
    before = sync_runs.alias()
    forgotten = sa.update(sync_runs).where(_IS_KEPT, before.c.id == sync_runs.c.id, *which).values(kept_export=None)
    return list(connection.scalars(forgotten.returning(before.c.kept_export)))


def drop_unknown_copies(connection: sa.Connection, home: Path) -> None:
    """Deletes the copies, also of held runs, that belong to no run: of those that were killed, and whose time is over.
    A folder has the number of its run."""
    folders = [home.resolve() / name for name in (FOLDER, HELD_FOLDER)]
    # In this order, a run that begins or ends meanwhile keeps its copy.
    found = [kept for folder in folders if folder.is_dir() for kept in folder.iterdir()]
    going = {str(run) for run in list_runs_under_way(connection)} if found else set[str]()
    paths = connection.scalars(sa.select(sync_runs.c.kept_export).where(sync_runs.c.kept_export.is_not(None)))
    # By the number: another process may have the data folder under another path.
    known = {Path(path).parent.name for path in paths}
    for kept in found:
        if kept.name not in going | known:
            shutil.rmtree(kept, ignore_errors=True)


def _prepare(connection: sa.Connection, actor: Actor, run: int, home: Path, *, has_named: bool) -> Sequence[str]:
    """The script that takes a run back, and its arguments."""
    require_role(connection, actor, Verb.SYNC_UNDO.least_role, Verb.SYNC_UNDO)
    require_undo(connection, run, home)
    found = _find(connection, run, home)
    before: Any = found.before
    options = ("--feed", found.feed.name, "--undoes", str(run), "--actor", actor.to_text(), "--source", before.source)
    named = ("--has-named",) if has_named else ()
    return (f"load_{found.feed.format}", *options, *named, "--", str(locate_export(before.kept_export, home)))


def _find(connection: sa.Connection, run: int, home: Path) -> _Found:
    own = connection.execute(sa.select(sync_runs).where(sync_runs.c.id == run)).one_or_none()
    if own is None:
        raise CommandError(f"there is no run {run}")
    feed = connection.execute(sa.select(feeds).where(feeds.c.id == own.feed_id)).one()
    changed = sa.select(sync_runs).where(
        sync_runs.c.feed_id == feed.id, sync_runs.c.stamp.is_not(None), sync_runs.c.finished_at.is_not(None)
    )
    latest = connection.execute(changed.order_by(sync_runs.c.id.desc()).limit(COPIES)).all()
    before = latest[1] if len(latest) == COPIES else None
    why_not = None
    if own.outcome == APPROVED:
        by = find_applied_by(connection, run)
        why_not = "it was held, and a later run applied it" if by is None else f"it was held, and run {by} applied it"
    elif own.stamp is None or own.outcome not in LOADED_OUTCOMES:
        why_not = "it has changed nothing"
    elif latest[0].id != run:
        why_not = f"run {latest[0].id} has changed the roster of the feed since"
    elif before is None:
        why_not = "it is the first load of the feed"
    elif not (before.kept_export and before.kept_digest and is_there(locate_export(before.kept_export, home))):
        why_not = f"the export of run {before.id}, before it, is not kept (any more)"
    elif lacking := _list_lacking(before, own):
        files = ", ".join(lacking)
        why_not = f"the export of run {before.id}, before it, lacks {files}, so what it changed there would stay"
    return _Found(feed, own, before, why_not)


def _list_lacking(before: sa.Row[Any], own: sa.Row[Any]) -> list[str]:
    """The files of the export of a run that the one before it lacks. An absent file leaves the records as they are, so
    a load of that export takes back none of their changes."""
    had = {file["file"] for file in before.files or () if file["mode"] != ABSENT}
    return [file["file"] for file in own.files or () if file["mode"] != ABSENT and file["file"] not in had]
