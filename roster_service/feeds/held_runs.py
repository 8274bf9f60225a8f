"""Held runs of the sync: the copies of their exports in the data folder, and the end of a held run."""

from __future__ import annotations

import contextlib
import lzma
import os
import shutil
import zipfile
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import IO, Any

import sqlalchemy as sa

from roster_service.db.tables import feeds, sync_changes, sync_runs
from roster_service.errors import StorageError
from roster_service.feeds.private_files import make_private

FOLDER = "held"
HELD, APPROVED = "held", "approved"
# The beginning of the reason for which a run is held whose ids are those of other people.
OTHER_IDS = "the export is of another SIS, or has other ids"
# Bytes of a file that are looked at together.
PIECE = 2**20

_BEFORE = sync_runs.alias("before")


def keep_export(path: Path, home: Path, run_id: int, folder: str = FOLDER) -> Path:
    """Copies an export, a folder or a file, into a folder of the data folder, for the owner alone. Returns the path of
    the copy. Raises StorageError if it cannot, and then leaves no partial copy."""
    # Resolved first, because a path that ends in `..` has no name of its own.
    kept = home.resolve() / folder / str(run_id) / (path.resolve().name or "export")
    # A backup that was restored gives the numbers of later runs again, and nobody may have swept their copies yet.
    drop_export(str(kept), home)
    try:
        kept.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if path.is_dir():
            # An editor locks a file by a link to nothing.
            shutil.copytree(path, kept, copy_function=_copy_private, ignore_dangling_symlinks=True)
            for folder_of_copy in (kept, *(found for found in kept.rglob("*") if found.is_dir())):
                folder_of_copy.chmod(0o700)
        else:
            _copy_private(path, kept)
    except OSError as error:
        drop_export(str(kept), home)
        # `copytree` raises an error with a list of (source, target, reason).
        reason = error.args[0][0][2] if isinstance(error, shutil.Error) else error.strerror
        raise StorageError(f"the export cannot be kept at {kept}: {reason}") from None
    return kept


def _copy_private(source: str | Path, target: str | Path) -> None:
    """Copies a file, with its times and not with its mode."""
    with Path(source).open("rb") as given, make_private(Path(target)) as made:
        shutil.copyfileobj(given, made, PIECE)
        times = os.fstat(given.fileno())
    os.utime(target, ns=(times.st_atime_ns, times.st_mtime_ns))


def has_text(path: Path, *texts: str) -> bool:
    """Returns whether a file of an export, a folder or a file, has one of the texts; also if one cannot be read. A zip
    is read as its files."""
    wanted = {text.encode(encoding) for text in texts for encoding in ("utf-8", "utf-16-le", "utf-16-be")}
    # The sync reads this encoding, too, which has no byte for many letters.
    for text in texts:
        with contextlib.suppress(UnicodeEncodeError):
            wanted.add(text.encode("cp1252"))
    try:
        for file in (found for found in ([path] if path.is_file() else path.rglob("*")) if found.is_file()):
            if not zipfile.is_zipfile(file):
                with file.open("rb") as stream:
                    if _finds(stream, wanted):
                        return True
                continue
            with zipfile.ZipFile(file) as packed:
                for name in packed.namelist():
                    with packed.open(name) as stream:
                        if _finds(stream, wanted):
                            return True
    except (OSError, RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error, lzma.LZMAError):
        return True
    return not is_there(path)


def is_there(kept: Path) -> bool:
    """Returns whether a kept export is there, and its folder is open to this user."""
    try:
        return kept.exists()
    except OSError:
        return False


def _finds(stream: IO[bytes], wanted: Collection[bytes]) -> bool:
    """Whether a stream has one of the texts."""
    overlap = max(map(len, wanted)) - 1
    before = b""
    while piece := stream.read(PIECE):
        part = before + piece
        if any(value in part for value in wanted):
            return True
        before = part[-overlap:] if overlap else b""
    return False


def locate_export(kept: str, home: Path) -> Path:
    """Returns where a kept export is: in the data folder `home` of this process, because the one that kept it may have
    had that folder under another path; else where that one has kept it: a copy of a database names exports in the data
    folder of the other one."""
    own, named = home.resolve().joinpath(*Path(kept).parts[-3:]), Path(kept)
    return named if is_there(named) and not is_there(own) else own


def drop_export(kept: str, home: Path) -> bool:
    """Deletes a kept export, and the folder that was made for it, from the data folder `home`, and from no other one,
    which may need it. Returns whether it was there, and nothing of it is left."""
    folder = locate_export(kept, home).parent
    was_there = is_there(folder)
    if folder.is_relative_to(home.resolve()):
        shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.lstat()
    except OSError as error:
        return was_there and isinstance(error, FileNotFoundError)
    return False


def close_held(
    connection: sa.Connection, which: sa.ColumnElement[bool], outcome: str, message: str, *, ends_alert: bool = True
) -> list[str]:
    """Ends the held runs for which the condition `which` holds, with this outcome and message, and deletes the changes
    that they would have made. `ends_alert`: a person has decided, so a run that is held later is announced again.
    Returns the paths of their kept exports, which the caller deletes after the commit."""
    closed = (
        sa.update(sync_runs)
        .where(which, sync_runs.c.outcome == HELD, _BEFORE.c.id == sync_runs.c.id)
        .values(outcome=outcome, message=message, kept_export=None, has_changes=False)
        .returning(sync_runs.c.id, sync_runs.c.feed_id, _BEFORE.c.kept_export)
    )
    rows = connection.execute(closed).all()
    connection.execute(sa.delete(sync_changes).where(sync_changes.c.run_id.in_([row.id for row in rows])))
    if ends_alert:
        of_feeds = feeds.c.id.in_([row.feed_id for row in rows]) & (feeds.c.alerted == HELD)
        connection.execute(sa.update(feeds).where(of_feeds).values(alerted=None))
    return [str(row.kept_export) for row in rows]


def read_outcome(connection: sa.Connection, run: int) -> dict[str, Any] | None:
    """Reads the outcome of a run for the change log; None if there is no such run."""
    outcome = connection.scalar(sa.select(sync_runs.c.outcome).where(sync_runs.c.id == run))
    return None if outcome is None else {"outcome": outcome}
