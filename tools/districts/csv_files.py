"""The CSV files of a made-up export, in a folder or a zip, written row by row. The same rows give the same bytes."""

from __future__ import annotations

import contextlib
import csv
import io
import shutil
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO

# The earliest date of a zip entry. The true date would make every export differ.
NO_DATE = (1980, 1, 1, 0, 0, 0)
PLAIN_FILE = 0o100644 << 16
Opener = Callable[[str], AbstractContextManager[IO[bytes]]]


@contextlib.contextmanager
def open_export(path: Path) -> Iterator[Opener]:
    """Yields a function that opens a file of the export for writing, one at a time. The export replaces `path` when the
    block ends: a zip if the name ends in .zip, else a folder.

    Raises FileExistsError if `path` does not end in .zip and is a file or a folder that is not empty.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.partial")
    if path.suffix == ".zip":
        try:
            with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
                yield lambda name: archive.open(_describe(name), "w", force_zip64=True)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
        return
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise FileExistsError(path)
    unfinished.mkdir()
    try:
        yield lambda name: (unfinished / name).open("wb")
        unfinished.replace(path)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _describe(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, NO_DATE)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = PLAIN_FILE
    return entry


def write_rows(stream: IO[bytes], headers: Iterable[str], rows: Iterable[Mapping[str, str]]) -> int:
    """Writes a CSV file: the headers, then the cells of each row under these headers. Returns the number of rows."""
    headers = tuple(headers)
    count = 0
    with io.TextIOWrapper(stream, encoding="utf-8", newline="") as text:
        writer = csv.writer(text)
        writer.writerow(headers)
        for row in rows:
            writer.writerow([row.get(header, "") for header in headers])
            count += 1
    return count
