"""The package of an export: a folder or a zip with CSV files, at its root or in one folder there.

The sync reads the files of a zip in place and never unpacks them to disk, so a name with `..` reaches no other file.
"""

from __future__ import annotations

import contextlib
import itertools
import lzma
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from sync_scripts.formats.tolerated import (
    BACKSLASHES,
    FILE_NAME_CASE,
    FOLDER,
    LIKE_FILE,
    OTHER_FILE,
    Notice,
    Tolerated,
)
from sync_scripts.reading.lines import open_plain
from sync_scripts.reading.lookalikes import PACKED, WORKBOOK, Lookalike, find_lookalike
from sync_scripts.reading.rejections import Findings, RefusedExportError, Rejection, cut_value, refuse_if

# Files that operating systems leave in folders and zips.
LITTER = ("__MACOSX", ".DS_Store", "._", "Thumbs.db", "desktop.ini")
# CSV compresses to a tenth, or to a fiftieth where it repeats itself; a higher ratio means a zip bomb.
MOST_RATIO = 200
MOST_BYTES = 100 * 2**30
# The errors that a damaged zip, a failing disk or broken UTF-16 raises in the middle of a file.
UNREADABLE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, UnicodeDecodeError)
# A file of at most this size may have any ratio.
HARMLESS_BYTES = 2**20
# How many files of other kinds are compared with those of the format.
MOST_COMPARED = 1000
# What lies in an export without a CSV file: (its path in lower case, the words with that path and the remedy). The
# first one that is there counts.
INSTEAD = (
    (r"xl/workbook\.(xml|bin)", "is an Excel workbook; save each of its sheets as a CSV file"),
    (rf".*\.csv{PACKED}", "has no CSV file, but the packed file {}; unpack it"),
    (r".*\.zip", "has no CSV file, but the zip {}; give that zip itself"),
    (r".*\.csv", "has its CSV files in {folder}/; put them at the root, or give that folder"),
    (f".*{WORKBOOK}", "has no CSV file, but the Excel workbook {}; save each of its sheets as a CSV file"),
    (f".*{PACKED}", "has no CSV file, but the packed file {}; unpack it"),
    (".*", "has no CSV file, but {}; give the folder or zip with the CSV files"),
)
# A file that is no zip: (its name in lower case, the words with the remedy).
NO_ZIP = (
    (r".*\.csv", "is a single CSV file; give the folder or zip with all of them"),
    (f".*{WORKBOOK}", "is an Excel workbook; save each of its sheets as a CSV file"),
    (f"(?!.*zip).*{PACKED}", "is packed in another way than as a zip; give a zip, or the folder"),
    (".*", "neither a folder nor a zip, or a damaged one"),
)
# Names that Windows gives to devices, in any folder and with any extension.
DEVICES = frozenset(
    {
        "con",
        "prn",
        "aux",
        "nul",
        "conin$",
        "conout$",
        *(port + number for port in ("com", "lpt") for number in "123456789¹²³"),
    }
)


@dataclass(frozen=True)
class ExportPackage:
    """The files of an export. `open` opens the file of a name for reading bytes from its start; `size` gives its
    size in bytes. `notices`: the tolerated deviations of the package itself; `lookalikes`: files that the sync
    leaves out, with names like those of files that it reads."""

    path: Path
    names: frozenset[str]
    open: Callable[[str], BinaryIO]
    size: Callable[[str], int]
    notices: tuple[Notice, ...] = ()
    lookalikes: tuple[Lookalike, ...] = ()


def describe_unreadable(error: BaseException) -> str:
    """Returns why a file cannot be read, of which reading raised one of `UNREADABLE`: the machine does not give it, or
    what it has is not whole."""
    reason = error.strerror if isinstance(error, OSError) else None
    return f"cannot be read: {reason}" if reason else "is truncated or damaged"


def recognize_names(package: ExportPackage, known: Iterable[str]) -> tuple[ExportPackage, tuple[Notice, ...]]:
    """(the package, where files whose names differ from `known` names only in letter case have the known names; the
    notices about them).

    Where a file with the exact name exists too, the other one keeps its unknown name."""
    by_case = {name.lower(): name for name in package.names}
    written = {name: by_case[name.lower()] for name in known if name not in package.names and name.lower() in by_case}
    names = (package.names - set(written.values())) | set(written)
    notices = (Tolerated(found, FILE_NAME_CASE, found=f"read as {name}") for name, found in sorted(written.items()))

    def find(name: str) -> str:
        return written.get(name, name)

    return ExportPackage(
        package.path,
        names,
        lambda name: package.open(find(name)),
        lambda name: package.size(find(name)),
        package.notices,
    ), tuple(notices)


def leave_out_others(
    package: ExportPackage, known: Iterable[str], files: Iterable[str]
) -> tuple[ExportPackage, tuple[Notice, ...]]:
    """(the package without the files whose names are not in `known`, the notices about them). `files`: the names of
    the files that the sync reads."""
    others, files = sorted(package.names - set(known)), list(files)
    like = {name: found for name in others[:MOST_COMPARED] if (found := find_lookalike(name, files)) is not None}
    notices = (
        Tolerated(cut_value(name), LIKE_FILE, found=str(like[name]))
        if name in like
        else Tolerated(cut_value(name), OTHER_FILE)
        for name in others
    )
    package = replace(package, names=package.names - set(others), lookalikes=tuple(like.values()))
    return package, tuple(notices)


@contextlib.contextmanager
def open_package(path: Path) -> Iterator[ExportPackage]:
    """Opens the export at `path` for the length of the block. Raises RefusedExportError where it is neither a folder
    nor an intact zip, or would unpack to too many bytes."""
    if path.is_dir():
        yield _open_folder(path)
        return
    # A device has no end, and a pipe waits for its writer.
    if path.exists() and not path.is_file():
        raise _refuse(path, "neither a folder nor a file")
    with _open_archive(path) as archive:
        listed = [(_normalize_path(entry.filename), entry) for entry in archive.infolist()]
        refuse_if(Findings.of(_find_harmful_paths(listed)))
        entries = [(name, entry) for name, entry in listed if not name.endswith("/") and not _is_litter(name)]
        refuse_if(Findings.of(_find_bad_entries(entries)))
        by_path = dict(entries)
        names, top, notices = _find_top(path, list(by_path))
        if any("\\" in entry.filename for _, entry in entries):
            notices = (Tolerated(path.name, BACKSLASHES), *notices)
        yield ExportPackage(
            path,
            frozenset(names),
            lambda name: _open_entry(archive, by_path[top + name]),
            lambda name: by_path[top + name].file_size,
            notices,
        )


def _refuse_without_files(path: Path, paths: list[str]) -> None:
    """Raises RefusedExportError if no CSV file is where those of an export are."""
    if any(entry.lower().endswith(".csv") and entry.count("/") < 2 for entry in paths):
        return
    for pattern, words in INSTEAD:
        if found := [entry for entry in paths if re.fullmatch(pattern, entry.lower())]:
            more = f" and {len(found) - 1:,} more" if len(found) > 1 else ""
            raise _refuse(path, words.format(cut_value(found[0]) + more, folder=found[0].rpartition("/")[0]))
    raise _refuse(path, "has no file; give the folder or zip with the CSV files")


def _find_top(path: Path, paths: list[str]) -> tuple[list[str], str, tuple[Notice, ...]]:
    """(the names of the files of an export, the path of their folder in front of each name, the notices). `paths`: the
    paths of all files from the root. The files are at the root, or, without a CSV file there, in the only folder."""
    at_root = [path for path in paths if "/" not in path]
    folders = {path.split("/")[0] + "/" for path in paths if "/" in path}
    _refuse_without_files(path, paths)
    top, notices = "", list[Notice]()
    if len(folders) == 1 and not any(path.lower().endswith(".csv") for path in at_root):
        [top] = folders
        notices = [Tolerated(top, FOLDER), *(Tolerated(path, OTHER_FILE) for path in at_root)]
    inside = [path.removeprefix(top) for path in paths if path.startswith(top)]
    below = {path.split("/")[0] + "/" for path in inside if "/" in path}
    notices += [Tolerated(folder, OTHER_FILE) for folder in sorted(below)]
    return [name for name in inside if "/" not in name], top, tuple(notices)


def list_entries(path: Path) -> list[Path]:
    """The files and folders of a folder and of the folders in it, in which the files of an export may be. Raises
    OSError."""
    return sorted((*path.iterdir(), *path.glob("*/*")))


def _open_folder(path: Path) -> ExportPackage:
    try:
        files = (entry.relative_to(path).as_posix() for entry in list_entries(path) if entry.is_file())
        paths = [name for name in files if not _is_litter(name)]
        deeper = (entry.relative_to(path).as_posix() for entry in path.glob("*/*/**/*.csv"))
        names, top, notices = _find_top(path, paths or list(itertools.islice(deeper, 1)))
        # The sizes of now: somebody may replace the folder while the sync reads it.
        sizes = {name: (path / top / name).stat().st_size for name in names}
    except OSError as error:
        raise _refuse(path, describe_unreadable(error)) from None
    return ExportPackage(
        path, frozenset(sizes), lambda name: open_plain((path / top / name).open("rb")), sizes.__getitem__, notices
    )


def _open_archive(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except zipfile.BadZipFile:
        name = path.name.lower()
        raise _refuse(path, next(words for pattern, words in NO_ZIP if re.fullmatch(pattern, name))) from None
    except (NotImplementedError, UnicodeDecodeError):
        # Its directory asks for a later version of the format, or has names in another encoding than it says.
        raise _refuse(path, "is a zip of another kind; pack the files anew") from None
    except OSError as error:
        raise _refuse(path, describe_unreadable(error)) from None


def _normalize_path(name: str) -> str:
    """The path of an entry with slashes, and without parts that name the folder itself."""
    path = name.replace("\\", "/")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    return ("/" if path.startswith("/") else "") + "/".join(parts) + ("/" if path.endswith("/") else "")


def _find_path_fault(path: str) -> str | None:
    """Why no file of an export has this path; None: it may have it. Nothing is unpacked, so the path does no harm here;
    but whoever unpacks the same zip would write over other files."""
    parts = path.split("/")
    if path.startswith("/") or ".." in parts:
        return "has a path that leads out of the zip"
    if ":" in path:
        return "has a path with a colon, which names a drive or a stream"
    if any(part.split(".")[0].strip().lower() in DEVICES for part in parts):
        return "has the name of a device"
    return None


def _find_harmful_paths(listed: list[tuple[str, zipfile.ZipInfo]]) -> Iterator[Rejection]:
    """`listed`: all entries with their paths, also folders and those that are left out."""
    return (Rejection(entry.filename, fault) for path, entry in listed if (fault := _find_path_fault(path)))


def _find_bad_entries(entries: list[tuple[str, zipfile.ZipInfo]]) -> Iterator[Rejection]:
    """`entries`: with their paths."""
    seen: set[str] = set()
    for name, entry in entries:
        # Many systems take names that differ only in letter case for one file.
        if name.lower() in seen:
            yield Rejection(name, "is in the zip twice")
        elif entry.flag_bits & 0x1:
            yield Rejection(name, "is encrypted")
        elif entry.file_size > HARMLESS_BYTES and entry.file_size > MOST_RATIO * max(entry.compress_size, 1):
            yield Rejection(name, f"would unpack to more than {MOST_RATIO} times its size")
        seen.add(name.lower())
    if sum(entry.file_size for _, entry in entries) > MOST_BYTES:
        yield Rejection("the zip", f"would unpack to more than {MOST_BYTES // 2**30} GiB")


def _open_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> BinaryIO:
    try:
        stream = archive.open(entry)
    except zipfile.BadZipFile as error:
        # Its words quote bytes of the file.
        raise RefusedExportError(Findings.of([Rejection(entry.filename, describe_unreadable(error))])) from None
    except NotImplementedError as error:
        raise RefusedExportError(Findings.of([Rejection(entry.filename, f"cannot be unpacked: {error}")])) from None
    return open_plain(stream)


def _is_litter(name: str) -> bool:
    return any(part.startswith(LITTER) for part in name.split("/"))


def _refuse(path: Path, reason: str) -> RefusedExportError:
    return RefusedExportError(Findings.of([Rejection(path.name or str(path), reason)]))
