"""Held runs of the sync: as operators approve and discard them."""

from __future__ import annotations

import subprocess
from typing import Any

from sqlalchemy import Connection, Row, select

from roster_service.access.scripts import run_script
from roster_service.db.actors import Actor, require_role
from roster_service.db.changes import Subject, Verb, recorded
from roster_service.db.held_runs import APPROVED, HELD, close_held, read_outcome
from roster_service.db.tables import feeds, sync_runs
from roster_service.errors import CommandError


def approve_run(connection: Connection, actor: Actor, run: int, *, as_json: bool) -> subprocess.CompletedProcess[str]:
    """Applies a held run with the export that was held, by the loader, which records it. Returns the output of the
    loader.

    Raises CommandError for a run that is not held, and for one that the loader did not apply: if it would now delete or
    change more records than it showed, it is held again, as a new run.
    """
    require_role(connection, actor, Verb.SYNC_APPROVE.least_role, Verb.SYNC_APPROVE)
    held = _find_held(connection, run)
    options = ("--feed", held.name, "--approves", str(run), "--actor", actor.to_text())
    done = run_script(connection, f"load_{held.format}", *options, *(["--json"] if as_json else []), "--", held.kept)
    # The outcome in the database decides, because other failures could give the same exit code.
    if _find(connection, run).outcome != APPROVED:
        raise CommandError(f"the run {run} was not applied:\n{done.stderr or done.stdout}")
    return done


def discard_run(connection: Connection, actor: Actor, run: int) -> tuple[str, list[str]]:
    """Discards a held run. Returns the name of its feed, and the paths of its kept exports, which the caller deletes
    after the commit (`drop_export`). Raises CommandError for a run that is not held."""
    held = _find_held(connection, run)
    subject = Subject.of_run(run, held.name)
    with recorded(connection, actor, Verb.SYNC_DISCARD, subject, lambda: read_outcome(connection, run)):
        kept = close_held(connection, sync_runs.c.id == run, "discarded", "discarded by an operator")
    return str(held.name), kept


def _find(connection: Connection, run: int) -> Row[Any, Any, Any, Any]:
    rows = select(sync_runs.c.outcome, sync_runs.c.kept_export.label("kept"), feeds.c.name, feeds.c.format).join(
        feeds, feeds.c.id == sync_runs.c.feed_id
    )
    found = connection.execute(rows.where(sync_runs.c.id == run)).one_or_none()
    if found is None:
        raise CommandError(f"there is no run {run}")
    return found


def _find_held(connection: Connection, run: int) -> Row[Any, Any, Any, Any]:
    found = _find(connection, run)
    if found.outcome != HELD:
        raise CommandError(f"the run {run} is not held; it is {found.outcome}")
    return found
