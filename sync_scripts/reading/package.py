"""The package of an export: a folder or a zip with CSV files at its root.

The sync reads the files of a zip in place and never unpacks them to disk, so a name with `..` reaches no other file.
"""

from __future__ import annotations

import contextlib
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from sync_scripts.formats.tolerated import FILE_NAME_CASE, describe_deviation
from sync_scripts.reading.rejections import Findings, RefusedExportError, Rejection, refuse_if

# Files that operating systems leave in folders and zips.
LITTER = ("__MACOSX/", ".DS_Store", "._", "Thumbs.db", "desktop.ini")
# CSV compresses to a tenth, or to a fiftieth where it repeats itself; a higher ratio means a zip bomb.
MOST_RATIO = 200
MOST_BYTES = 100 * 2**30
# The errors that a damaged zip or a failing disk raises in the middle of a file.
UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, OSError)
# A file of at most this size may have any ratio.
HARMLESS_BYTES = 2**20


@dataclass(frozen=True)
class Package:
    """The files of an export. `open` opens the file of a name for reading bytes from its start; `size` gives its
    size in bytes."""

    path: Path
    names: frozenset[str]
    open: Callable[[str], BinaryIO]
    size: Callable[[str], int]


def recognize_names(package: Package, known: Iterable[str]) -> tuple[Package, tuple[str, ...]]:
    """(the package, where files whose names differ from `known` names only in letter case have the known names; the
    notices about them).

    Where a file with the exact name exists too, the other one keeps its unknown name."""
    by_case = {name.lower(): name for name in package.names}
    written = {name: by_case[name.lower()] for name in known if name not in package.names and name.lower() in by_case}
    names = (package.names - set(written.values())) | set(written)
    notices = (describe_deviation(found, FILE_NAME_CASE, f"read as {name}") for name, found in sorted(written.items()))

    def find(name: str) -> str:
        return written.get(name, name)

    return Package(
        package.path, names, lambda name: package.open(find(name)), lambda name: package.size(find(name))
    ), tuple(notices)


@contextlib.contextmanager
def open_package(path: Path) -> Iterator[Package]:
    """Opens the export at `path` for the length of the block. Raises RefusedExportError where it is neither a folder
    nor an intact zip, has files in subfolders, or would unpack to too many bytes."""
    if path.is_dir():
        yield _open_folder(path)
        return
    with _open_archive(path) as archive:
        entries = [entry for entry in archive.infolist() if not _is_litter(entry.filename)]
        refuse_if(Findings.of(_find_bad_entries(entries)))
        yield Package(
            path,
            frozenset(entry.filename for entry in entries),
            lambda name: _open_entry(archive, name),
            lambda name: archive.getinfo(name).file_size,
        )


def _open_folder(path: Path) -> Package:
    try:
        entries = sorted(entry for entry in path.iterdir() if not _is_litter(entry.name))
    except OSError as error:
        raise _refuse(path, error.strerror or "cannot be read") from None
    reason = "is not a file; the files of an export lie side by side"
    refuse_if(Findings.of(Rejection(entry.name, reason) for entry in entries if not entry.is_file()))
    # The sizes of now: somebody may replace the folder while the sync reads it.
    try:
        sizes = {entry.name: entry.stat().st_size for entry in entries}
    except OSError as error:
        raise _refuse(path, error.strerror or "cannot be read") from None
    return Package(path, frozenset(sizes), lambda name: (path / name).open("rb"), sizes.__getitem__)


def _open_archive(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except zipfile.BadZipFile:
        raise _refuse(path, "neither a folder nor a zip, or a damaged one") from None
    except OSError as error:
        raise _refuse(path, error.strerror or "cannot be read") from None


def _find_bad_entries(entries: list[zipfile.ZipInfo]) -> Iterator[Rejection]:
    seen: set[str] = set()
    for entry in entries:
        name = entry.filename
        if "/" in name or "\\" in name:
            yield Rejection(name, "lies in a folder; the files of an export lie at the root of the zip")
        elif name in seen:
            yield Rejection(name, "is in the zip twice")
        elif entry.flag_bits & 0x1:
            yield Rejection(name, "is encrypted")
        elif entry.file_size > HARMLESS_BYTES and entry.file_size > MOST_RATIO * max(entry.compress_size, 1):
            yield Rejection(name, f"would unpack to more than {MOST_RATIO} times its size")
        seen.add(name)
    if sum(entry.file_size for entry in entries) > MOST_BYTES:
        yield Rejection("the zip", f"would unpack to more than {MOST_BYTES // 2**30} GiB")


def _open_entry(archive: zipfile.ZipFile, name: str) -> BinaryIO:
    try:
        return archive.open(name)  # type: ignore[return-value]
    except (zipfile.BadZipFile, NotImplementedError) as error:
        raise RefusedExportError(Findings.of([Rejection(name, f"cannot be unpacked: {error}")])) from None


def _is_litter(name: str) -> bool:
    return name.startswith(LITTER)


def _refuse(path: Path, reason: str) -> RefusedExportError:
    return RefusedExportError(Findings.of([Rejection(path.name or str(path), reason)]))
