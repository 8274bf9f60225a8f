"""CSV files that only their owner can read, because they have values of exports."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import stat
from collections.abc import Iterable, Sequence
from typing import IO, TextIO


def write_private_csv(out: TextIO, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Writes a header and rows; None is an empty cell. A regular file becomes readable for its owner alone."""
    keep_private(out)
    writer = csv.writer(out)
    writer.writerow(header)
    writer.writerows(rows)
    out.flush()


def keep_private(out: IO[str]) -> None:
    """Makes a regular file readable for its owner alone. A device, a pipe or a stream in memory stays as it is."""
    with contextlib.suppress(io.UnsupportedOperation):
        if stat.S_ISREG(os.fstat(out.fileno()).st_mode):
            os.fchmod(out.fileno(), stat.S_IRUSR | stat.S_IWUSR)
