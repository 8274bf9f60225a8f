"""Whether an export is complete: nobody has written to it for some minutes, or its marker file is there.

An export that is still being copied looks like one whose last rows have vanished, so the sync would tombstone them.
"""

from __future__ import annotations

import contextlib
import errno
import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from roster_service.errors import RosterServiceError
from sync_scripts.reading.package import describe_unreadable, list_entries
from sync_scripts.reading.rejections import Findings, RefusedExportError, Rejection

# How long to wait after an export was changed while it was read.
CHANGED_SECONDS = 60
# How far the clocks of two machines may be apart before a date is called one of the future.
CLOCK_SECONDS = 60
# The year of an entry of a zip that has no time.
NO_YEAR = 1980


class IncompleteExportError(RosterServiceError):
    """The export is perhaps not complete yet. `seconds`: when to look again."""

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds


class MissingExportError(RefusedExportError):
    """There is no export at its path."""

    def __init__(self, path: Path) -> None:
        super().__init__(Findings.of([Rejection(path.name or str(path), f"there is no export at {path}")]))
        self.path = path


def require_export(path: Path) -> None:
    """Raises MissingExportError if there is no file or folder at `path`, and RefusedExportError if nobody can tell, as
    of one in a folder that this user may not enter."""
    try:
        is_there = path.exists()
    except OSError as error:
        raise RefusedExportError(Findings.of([Rejection(path.name, describe_unreadable(error))])) from None
    if not is_there:
        raise MissingExportError(path)


def refuse_changed(path: Path) -> IncompleteExportError:
    """Returns the error for an export that somebody has changed while it was read."""
    return IncompleteExportError(f"{path.name} was changed while it was read; nothing was changed", CHANGED_SECONDS)


@dataclass(frozen=True)
class CompletenessRule:
    """The rule for one feed. `minutes`: how long nobody may have written to the export. `marker`: the name of a file in
    or beside the export that is written last; its presence then decides, not the age."""

    minutes: int
    marker: str | None = None

    def require_complete(self, path: Path, now: float) -> None:
        """Raises IncompleteExportError for an export that may be incomplete. `now`: seconds since the epoch. An export
        that does not exist passes: reading it gives the better message."""
        written = find_last_write(path)
        if written is None:
            return
        if self.marker is not None:
            self._require_marker(path, self.marker, written)
        # Not longer: a wrong clock may give a date of any year.
        elif (wait := min(written - now, 0) + self.minutes * 60) > 0:
            last = f"was written to {max(0, round(now - written))} seconds ago"
            if written > now + CLOCK_SECONDS:
                last = "has a date that lies in the future"
            raise IncompleteExportError(
                f"{path.name} {last}, and may be incomplete; it is loaded {self.minutes} minutes after the last write",
                wait,
            )

    def _require_marker(self, path: Path, marker: str, written: float) -> None:
        own = [place / marker for place in (path, path.parent) if (place / marker).is_file()]
        if not own:
            raise IncompleteExportError(f"{path.name} has no {marker} yet, and may be incomplete", self.minutes * 60)
        if max(file.stat().st_mtime for file in own) < written:
            raise IncompleteExportError(
                f"{path.name} is newer than its {marker}, and may be incomplete", self.minutes * 60
            )


def find_last_write(path: Path) -> float | None:
    """Returns when a file of the export was written last, in seconds since the epoch; None if there is no export.
    Raises IncompleteExportError as `take_snapshot` does."""
    return max((written for _, _, written in _list_files(path)), default=None)


def find_written_at(path: Path) -> datetime | None:
    """Returns when the newest file of an export was written; None if nothing says it. A zip says it by its entries,
    because a copy of the zip has a time of its own; a program may write entries without a time, of the year 1980."""
    times: list[datetime] = []
    if path.is_file():
        with zipfile.ZipFile(path) as archive:
            entries = [entry.date_time for entry in archive.infolist() if entry.date_time[0] > NO_YEAR]
        for entry in entries:
            # The bits of a zip can say the month 0, and 60 seconds.
            with contextlib.suppress(ValueError):
                times.append(datetime(*entry).astimezone())
    written = find_last_write(path)
    return max(times, default=None if written is None else datetime.fromtimestamp(written, UTC))


def take_snapshot(path: Path) -> frozenset[tuple[str, int, float]]:
    """Returns the name, the size and the time of each file of an export: two equal snapshots mean that nobody wrote to
    it in between. Raises IncompleteExportError for a file of which the machine gives neither."""
    return frozenset(_list_files(path))


def _list_files(path: Path) -> Iterator[tuple[str, int, float]]:
    try:
        entries = [path] if path.is_file() else list_entries(path)
    except OSError as error:
        # Reading says better why there is no export.
        if str(error.filename) == str(path):
            return
        raise _refuse_unreadable(path, error) from None
    for entry in entries:
        # A file that is under way may be gone since the folder was read.
        with contextlib.suppress(FileNotFoundError):
            found = _find_status(path, entry)
            yield entry.relative_to(path).as_posix(), found.st_size, found.st_mtime


def _find_status(path: Path, entry: Path) -> os.stat_result:
    """The status of an entry of the export at `path`, or of the link that leads to none. Raises FileNotFoundError if it
    is gone, and IncompleteExportError if nobody can tell."""
    try:
        return entry.stat()
    except FileNotFoundError:
        return entry.lstat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            return entry.lstat()
        raise _refuse_unreadable(path, error) from None


def _refuse_unreadable(path: Path, error: OSError) -> IncompleteExportError:
    return IncompleteExportError(
        f"a file of {path.name} {describe_unreadable(error)}, so it may be incomplete", CHANGED_SECONDS
    )
