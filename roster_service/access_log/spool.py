"""The spool: files in the data folder with the rows of the access log that the database does not have yet.

A worker appends each row to a file of its own before the answer leaves, so a worker that is killed loses none. No write
waits for the disk: a crash of the whole machine can lose the rows that its operating system had not written yet.

A worker locks its files, and the operating system unlocks them when the worker ends, however it ends. So every worker
can tell the files of ended workers, and takes them over.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

SUFFIX = ".jsonl"
# The rows that the database refused for their content. No worker adopts this file.
REFUSED_NAME = "refused-rows"
# What the database gets at once: rows, and bytes of them, because a row that names many people has megabytes.
BATCH_ROWS, BATCH_BYTES = 10_000, 16 * 2**20
_FLAGS = os.O_RDWR | os.O_APPEND


class SpoolFile:
    """A file of rows that this process has locked. `rows`: how many this process has appended."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.rows = 0
        self._path = path
        self._descriptor = descriptor
        self._size = 0

    def append(self, line: bytes) -> None:
        """Writes a line. Raises OSError if the file does not take the whole line; it then has no part of it."""
        if os.write(self._descriptor, line) < len(line):
            os.ftruncate(self._descriptor, self._size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._size += len(line)
        self.rows += 1

    def read_batches(self) -> Iterator[Sequence[bytes]]:
        """Yields the rows, in their order. A line that is no row is left out: the end of one that was being written
        when its worker was killed, whose answer has not left, or damage by a crash of the machine."""
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        with open(self._descriptor, "rb", closefd=False) as lines:
            yield from make_batches(filter(_is_row, lines))

    def remove(self) -> None:
        """Deletes the file, and then unlocks it."""
        self._path.unlink(missing_ok=True)
        self.unlock()

    def unlock(self) -> None:
        """Leaves the file to other workers."""
        os.close(self._descriptor)


def make_batches(rows: Iterable[bytes]) -> Iterator[Sequence[bytes]]:
    """Yields the rows as batches of at most `BATCH_ROWS` rows and, but for a single row, `BATCH_BYTES`."""
    batch: list[bytes] = []
    size = 0
    for row in rows:
        if batch and (len(batch) == BATCH_ROWS or size + len(row) > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += len(row)
    if batch:
        yield batch


def _is_row(line: bytes) -> bool:
    """Whether a line may be a row. One that is damaged inside, the database refuses."""
    return line.startswith(b"{") and line.endswith(b"}\n")


class Spool:
    """The file that a worker appends to, and the files that wait to be moved to the database. Threads may share it."""

    def __init__(self, folder: Path) -> None:
        """`folder`: of all workers of the machine for one database; the first row makes it. Beside it are those of
        other databases."""
        self._folder = folder
        self._lock = threading.Lock()
        self._current: SpoolFile | None = None
        self._waiting: list[SpoolFile] = []

    @property
    def rows(self) -> int:
        """How many rows of this worker wait."""
        with self._lock:
            return sum(file.rows for file in (*self._waiting, self._current) if file is not None)

    def append(self, line: bytes) -> None:
        """Appends a row. Raises OSError if the disk does not take it."""
        with self._lock:
            if self._current is None:
                self._current = self._create()
            self._current.append(line)

    def seal(self) -> None:
        """Lets the current file wait to be moved; the next row begins another one."""
        with self._lock:
            if self._current is not None and self._current.rows:
                self._waiting.append(self._current)
                self._current = None

    def adopt(self) -> None:
        """Takes over the files of workers that have ended. Raises OSError if this user may not read the folder."""
        # `Path.glob` would pass over a folder that it may not read.
        found = self._folder.iterdir() if self._folder.exists() else ()
        for path in sorted(path for path in found if path.suffix == SUFFIX):
            try:
                descriptor = os.open(path, _FLAGS)
            except FileNotFoundError:
                continue
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                continue
            # Another worker may have moved it meanwhile.
            if os.fstat(descriptor).st_nlink == 0:
                os.close(descriptor)
                continue
            with self._lock:
                self._waiting.append(SpoolFile(path, descriptor))

    def list_strangers(self) -> Sequence[Path]:
        """Returns the files beside the folder and in other folders there: they have rows of other databases, and no
        worker of this one adopts them."""
        around = self._folder.parent
        found = (*around.glob(f"*{SUFFIX}"), *around.glob(f"*/*{SUFFIX}"))
        return sorted(path for path in found if path.parent != self._folder)

    def list_waiting(self) -> Sequence[SpoolFile]:
        """Returns the files that wait to be moved, oldest first."""
        with self._lock:
            return tuple(self._waiting)

    def remove(self, file: SpoolFile) -> None:
        """Deletes a file whose rows the database has. Raises OSError if the disk refuses it."""
        file.remove()
        with self._lock:
            self._waiting.remove(file)

    def put_aside(self, line: bytes) -> Path:
        """Appends a row that the database refuses to a file of its own, which nobody deletes. Returns the path. Raises
        OSError if the disk does not take it."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._folder / REFUSED_NAME
        descriptor = os.open(path, _FLAGS | os.O_CREAT, 0o600)
        try:
            if os.write(descriptor, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(descriptor)
        return path

    def close(self) -> None:
        """Leaves the files that still have rows to other workers."""
        with self._lock:
            left, self._waiting = self._waiting, []
            current, self._current = self._current, None
        for file in left:
            file.unlock()
        if current is not None:
            current.unlock() if current.rows else current.remove()

    def _create(self) -> SpoolFile:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._folder / (uuid.uuid4().hex + SUFFIX)
        # It gets its name once it is locked: another worker would adopt it.
        unlocked = path.with_suffix(".new")
        descriptor = os.open(unlocked, _FLAGS | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            unlocked.rename(path)
        except OSError:
            os.close(descriptor)
            raise
        return SpoolFile(path, descriptor)
