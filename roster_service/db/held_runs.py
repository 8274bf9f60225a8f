"""Held runs of the sync: their exports, kept in the data folder until somebody decides, and how they end."""

from __future__ import annotations

import shutil
from pathlib import Path

from sqlalchemy import ColumnElement, Connection, update

from roster_service.db.tables import sync_runs
from roster_service.errors import StorageError

FOLDER = "held"
HELD, APPROVED = "held", "approved"


def keep_export(path: Path, home: Path, run_id: int) -> Path:
    """Copies an export into the data folder; returns where it is kept. Raises StorageError where it cannot be; then
    nothing is left there."""
    # A path that ends in dots has a name all the same.
    kept = home.resolve() / FOLDER / str(run_id) / (path.resolve().name or "export")
    try:
        kept.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if path.is_dir():
            shutil.copytree(path, kept)
        else:
            shutil.copy2(path, kept)
    except OSError as error:
        drop_export(str(kept))
        # Of a folder, a list: source, target and reason of each file.
        reason = error.args[0][0][2] if isinstance(error, shutil.Error) else error.strerror
        raise StorageError(f"the held export cannot be kept at {kept}: {reason}") from None
    return kept


def drop_export(kept: str) -> None:
    """Removes a kept export, with the folder that was made for it."""
    shutil.rmtree(Path(kept).parent, ignore_errors=True)


def close_held(connection: Connection, which: ColumnElement[bool], outcome: str, message: str) -> list[str]:
    """Ends the held runs for which `which` holds. Returns the exports that were kept for them, to be dropped once
    that is committed."""
    before = sync_runs.alias()
    closed = (
        update(sync_runs)
        .where(which, sync_runs.c.outcome == HELD, before.c.id == sync_runs.c.id)
        .values(outcome=outcome, message=message, kept_export=None)
        .returning(before.c.kept_export)
    )
    return [str(path) for path in connection.scalars(closed)]
