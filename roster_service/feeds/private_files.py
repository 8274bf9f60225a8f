"""Files that only their owner can read, because they have values of exports or records of people."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, TextIO

from roster_service.errors import CommandError

# A spreadsheet takes a cell that begins with one of these for a formula, also in full width.
FORMULA_STARTS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "\t", "\r")


def guard_cell(text: str) -> str:
    """Returns the text of a cell of CSV for people, which is no formula in a spreadsheet."""
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def guard_row(row: Iterable[object]) -> list[object]:
    """Returns the cells of a row of CSV for people, of which none is a formula in a spreadsheet."""
    return [guard_cell(cell) if isinstance(cell, str) else cell for cell in row]


def write_private_csv(out: TextIO, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Writes a header and rows; None is an empty cell, and no cell is a formula in a spreadsheet. A regular file
    becomes readable for its owner alone."""
    keep_private(out)
    writer = csv.writer(out)
    writer.writerow(header)
    writer.writerows(map(guard_row, rows))
    out.flush()


def keep_private(out: IO[str]) -> None:
    """Makes a regular file readable for its owner alone. A device, a pipe or a stream in memory stays as it is."""
    with contextlib.suppress(io.UnsupportedOperation):
        if stat.S_ISREG(os.fstat(out.fileno()).st_mode):
            os.fchmod(out.fileno(), stat.S_IRUSR | stat.S_IWUSR)


def make_private(path: Path) -> IO[bytes]:
    """Returns a new file, which only its owner can read, to write it. Raises FileExistsError if there is one."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, stat.S_IRUSR | stat.S_IWUSR), "wb")


@contextlib.contextmanager
def open_private(path: Path, *, replaces: bool = True) -> Iterator[IO[bytes]]:
    """Yields a file that only its owner can read, in place of any other one at `path` once the block has ended without
    an error; else nothing is left of it. `replaces`: whether there may be another one. Raises CommandError if it cannot
    be written, and for a device, a pipe or a folder, which a file must not replace."""
    try:
        if path.exists() and not path.is_file():
            raise CommandError(f"{path} is no file; name one")
        if not replaces and path.exists():
            raise CommandError(f"{path} exists, and is not replaced")
        # The file to which a link leads is replaced, not the link, as that of /dev/stdout.
        path = path.resolve()
        unfinished = path.with_name(f".{path.name}.{os.getpid()}")
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, stat.S_IRUSR | stat.S_IWUSR)
        try:
            with os.fdopen(descriptor, "wb") as out:
                yield out
                out.flush()
                # Else a machine that loses its power may have the name, and no content.
                os.fsync(out.fileno())
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}") from None
