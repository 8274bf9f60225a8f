"""Held runs of the sync: the copies of their exports in the data folder, and the end of a held run."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, select, update

from roster_service.db.tables import sync_changes, sync_runs
from roster_service.errors import StorageError

FOLDER = "held"
HELD, APPROVED = "held", "approved"


def keep_export(path: Path, home: Path, run_id: int) -> Path:
    """Copies an export, a folder or a file, into the data folder. Returns the path of the copy. Raises StorageError if
    it cannot, and then leaves no partial copy."""
    # Resolved first, because a path that ends in `..` has no name of its own.
    kept = home.resolve() / FOLDER / str(run_id) / (path.resolve().name or "export")
    try:
        kept.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if path.is_dir():
            shutil.copytree(path, kept)
        else:
            shutil.copy2(path, kept)
    except OSError as error:
        drop_export(str(kept))
        # `copytree` raises an error with a list of (source, target, reason).
        reason = error.args[0][0][2] if isinstance(error, shutil.Error) else error.strerror
        raise StorageError(f"the held export cannot be kept at {kept}: {reason}") from None
    return kept


def drop_export(kept: str) -> None:
    """Deletes a kept export and the folder that was made for it."""
    shutil.rmtree(Path(kept).parent, ignore_errors=True)


def close_held(connection: Connection, which: ColumnElement[bool], outcome: str, message: str) -> list[str]:
    """Ends the held runs for which the condition `which` holds, with this outcome and message, and deletes the changes
    that they would have made. Returns the paths of their kept exports, which the caller deletes after the commit."""
    before = sync_runs.alias()
    closed = (
        update(sync_runs)
        .where(which, sync_runs.c.outcome == HELD, before.c.id == sync_runs.c.id)
        .values(outcome=outcome, message=message, kept_export=None, has_changes=False)
        .returning(sync_runs.c.id, before.c.kept_export)
    )
    rows = connection.execute(closed).all()
    connection.execute(delete(sync_changes).where(sync_changes.c.run_id.in_([row.id for row in rows])))
    return [str(row.kept_export) for row in rows]


def read_outcome(connection: Connection, run: int) -> dict[str, Any] | None:
    """Reads the outcome of a run for the change log; None if there is no such run."""
    outcome = connection.scalar(select(sync_runs.c.outcome).where(sync_runs.c.id == run))
    return None if outcome is None else {"outcome": outcome}
