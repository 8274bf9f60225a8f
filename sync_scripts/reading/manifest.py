"""What a package says of its own files, or that it says nothing."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from roster_service.feeds.run_history import ABSENT
from sync_scripts.formats import tolerated
from sync_scripts.formats.model import CsvFile, Format
from sync_scripts.formats.tolerated import Deviation, Notice, Tolerated
from sync_scripts.reading.headers import SEPARATED, find_separator
from sync_scripts.reading.lines import CleanLines, decode_cell, list_deviations
from sync_scripts.reading.lookalikes import name_lookalikes
from sync_scripts.reading.package import (
    UNREADABLE,
    ExportPackage,
    describe_unreadable,
    leave_out_others,
    recognize_names,
)
from sync_scripts.reading.rejections import Findings, RefusedExportError, Rejection, refuse_if

FILE_NAME = "manifest.csv"
HEADER = ["propertyName", "value"]
# A manifest has some twenty short lines.
MOST_BYTES = 65_536
FILE_PREFIX = "file."
BULK, DELTA = "bulk", "delta"
VERSION = "oneroster.version"
# The properties besides `file.*`, and the allowed values of each; None: any value.
PROPERTIES: Mapping[str, tuple[str, ...] | None] = {
    "manifest.version": ("1.0", "1"),
    VERSION: ("1.1", "1.2"),
    "source.systemName": None,
    "source.systemCode": None,
}
REQUIRED_PROPERTIES = ("manifest.version", VERSION)


@dataclass(frozen=True)
class Manifest:
    """The content of a manifest: the version of OneRoster (None where it is missing), and the mode of each file
    (`bulk`, `delta` or `absent`) by its name without .csv. `notices`: the tolerated deviations."""

    version: str | None
    modes: Mapping[str, str]
    notices: tuple[Notice, ...] = ()


def read_manifest(package: ExportPackage, files: Collection[str]) -> Manifest:
    """Reads the manifest of a package. `files`: the names, without .csv, of all files that the manifest may name.
    Raises RefusedExportError where the manifest cannot be read, or a property has an unknown value."""
    written, deviations = _read_rows(package)
    meant = [(line, _recognize(name, files), value) for line, name, value in written]
    name_notices = (
        Tolerated(FILE_NAME, tolerated.PROPERTY_CASE, found=f"{name}, read as {known}")
        for (_, name, _), (_, known, _) in zip(written, meant, strict=True)
        if name != known
    )
    others = {line for line, name, _ in meant if not _is_known(name, files)}
    rows = [(line, name, _fold_mode(name, value)) for line, name, value in meant if line not in others]
    refuse_if(Findings.of(_find_bad_rows(rows)))
    values = {name: value for _, name, value in rows}
    missing = [name for name in REQUIRED_PROPERTIES if name not in values]
    return Manifest(
        values.get(VERSION),
        # Some exporters leave the mode of an absent file blank.
        {name.removeprefix(FILE_PREFIX): value or ABSENT for _, name, value in rows if name.startswith(FILE_PREFIX)},
        (
            *(Tolerated(FILE_NAME, deviation) for deviation in (*deviations, *_list_deviations(meant))),
            *name_notices,
            # The line replaces the name, which may be any text.
            *(Tolerated(FILE_NAME, tolerated.OTHER_PROPERTY, found=f"line {line}") for line in sorted(others)),
            *(Tolerated(FILE_NAME, tolerated.MISSING_PROPERTY, found=name) for name in missing),
        ),
    )


def _recognize(written: str, files: Collection[str]) -> str:
    """The known property that differs from the written one only in letter case, else the written one."""
    known = {name.lower(): name for name in (*PROPERTIES, *(FILE_PREFIX + file for file in files))}
    return known.get(written.lower(), written)


def _is_known(name: str, files: Collection[str]) -> bool:
    return name in PROPERTIES or (name.startswith(FILE_PREFIX) and name.removeprefix(FILE_PREFIX) in files)


def _fold_mode(name: str, value: str) -> str:
    """The value of a property, a mode in lower case."""
    return value.lower() if name.startswith(FILE_PREFIX) else value


def _list_deviations(rows: list[tuple[int, str, str]]) -> Iterator[Deviation]:
    if any(name == "manifest.version" and value == tolerated.MANIFEST_VERSION.example[0] for _, name, value in rows):
        yield tolerated.MANIFEST_VERSION
    modes = [value for _, name, value in rows if name.startswith(FILE_PREFIX)]
    if "" in modes:
        yield tolerated.BLANK_MODE
    if any(mode != mode.lower() for mode in modes):
        yield tolerated.MODE_CASE


def _read_rows(package: ExportPackage) -> tuple[list[tuple[int, str, str]], tuple[Deviation, ...]]:
    """((line, property, value) of every row, the tolerated deviations of the first line)."""

    def refuse(reason: str, line: int | None = None) -> RefusedExportError:
        return RefusedExportError(Findings.of([Rejection(FILE_NAME, reason, line)]))

    try:
        with package.open(FILE_NAME) as stream:
            data, deviations = stream.read(MOST_BYTES + 1), list_deviations(stream)
    except UNREADABLE as error:
        raise refuse(describe_unreadable(error)) from None
    if len(data) > MOST_BYTES:
        raise refuse(f"is longer than {MOST_BYTES} bytes")
    deviations += CleanLines(io.BytesIO(data)).deviations
    try:
        text = decode_cell(data)
        reader = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
        lines = [(reader.line_num, row) for row in reader if any(row)]
    except UnicodeDecodeError:
        raise refuse("is neither UTF-8 nor Windows-1252") from None
    except csv.Error as error:
        raise refuse(f"is no CSV: {error}") from None
    header = lines[0][1] if lines else []
    if [name.strip().lower() for name in header] != [name.lower() for name in HEADER]:
        separator = find_separator(",".join(header).encode(), HEADER)
        raise refuse(SEPARATED.format(separator) if separator else f"the header must be {','.join(HEADER)}", 1)
    for line, row in lines[1:]:
        if len(row) < len(HEADER) or any(row[len(HEADER) :]):
            raise refuse(f"the row has {len(row)} cells, not {len(HEADER)}", line)
    found = {
        tolerated.WINDOWS_1252: text.encode() != data,
        tolerated.HEADER_CASE: header != HEADER,
        tolerated.EXTRA_CELLS: any(len(row) > len(HEADER) for _, row in lines),
    }
    rows = [(line, row[0].strip(), row[1].strip()) for line, row in lines[1:]]
    return rows, (*deviations, *(deviation for deviation, is_found in found.items() if is_found))


def _find_bad_rows(rows: list[tuple[int, str, str]]) -> Iterator[Rejection]:
    seen: set[str] = set()
    for line, name, value in rows:
        if name in seen:
            yield Rejection(FILE_NAME, "stands here a second time", line, "propertyName", name)
        elif name.startswith(FILE_PREFIX):
            if value not in (BULK, DELTA, ABSENT, ""):
                yield Rejection(FILE_NAME, "must be bulk, delta or absent", line, "value", value)
        else:
            known = PROPERTIES[name]
            if known is not None and value not in known:
                yield Rejection(FILE_NAME, f"{name} must be {' or '.join(known)}", line, "value", value)
        seen.add(name)


@dataclass(frozen=True)
class Contents:
    """The files of an export to load, the package that has them under their declared names, and notices for the
    report.

    `deltas`: the names of the delta files, which name only changed records. An export with a delta file may leave out
    any other file; the `silent` files are those, and count as deltas without rows."""

    package: ExportPackage
    files: tuple[CsvFile, ...]
    notices: tuple[Notice, ...]
    deltas: frozenset[str] = frozenset()
    silent: tuple[CsvFile, ...] = ()

    def list_made(self, form: Format) -> frozenset[str]:
        """The names of the files that the export lacks and the sync makes."""
        return form.made - {file.name for file in self.files} - self.deltas


def list_contents(package: ExportPackage, manifest: Manifest, form: Format) -> Contents:
    """Compares the manifest with the files of the package, and returns the files to load. A file that it does not
    declare is in bulk; beside deltas, it is left out. Raises RefusedExportError where a required file is absent."""
    known = (FILE_NAME, *(f"{name}.csv" for name in (*(file.name for file in form.files), *form.skipped)))
    package, name_notices = recognize_names(package, known)
    files = [FILE_NAME, *(file.file_name for file in form.files)]
    package, other_notices = leave_out_others(package, known, files)
    manifest, mode_notices = _correct_modes(package, manifest, form)
    refuse_if(Findings.of(_find_differences(package, manifest, form)))
    loaded = tuple(file for file in form.files if manifest.modes.get(file.name, ABSENT) != ABSENT)
    deltas = _list_deltas(manifest, form)
    silent = tuple(file for file in form.files if file not in loaded) if deltas else ()
    skipped = (
        f"{name}.csv holds no roster and is skipped"
        for name in sorted(form.skipped)
        if manifest.modes.get(name, ABSENT) != ABSENT
    )
    notices = (*package.notices, *manifest.notices, *name_notices, *other_notices, *mode_notices, *skipped)
    return Contents(package, loaded, notices, deltas | {file.name for file in silent}, silent)


def _list_deltas(manifest: Manifest, form: Format) -> frozenset[str]:
    return frozenset(file.name for file in form.files if manifest.modes.get(file.name) == DELTA)


def _correct_modes(package: ExportPackage, manifest: Manifest, form: Format) -> tuple[Manifest, list[Notice]]:
    """(the manifest with the modes that the files of the package have, the notices about the differences)."""
    modes, notices = dict(manifest.modes), list[Notice]()
    deltas = _list_deltas(manifest, form)
    required = {file.name for file in form.files if file.required} - form.made
    for file in form.files:
        is_there, mode = file.file_name in package.names, modes.get(file.name, ABSENT)
        if is_there and mode == ABSENT:
            modes[file.name] = ABSENT if deltas else BULK
            notices.append(
                Tolerated(file.file_name, tolerated.UNDECLARED_FILE, found="left out" if deltas else "read in bulk")
            )
        elif not is_there and mode == BULK and not deltas and file.name not in required:
            modes[file.name] = ABSENT
            notices.append(Tolerated(file.file_name, tolerated.MISSING_FILE))
    for name in form.skipped:
        if modes.get(name, ABSENT) != ABSENT and f"{name}.csv" not in package.names:
            modes[name] = ABSENT
            notices.append(Tolerated(f"{name}.csv", tolerated.MISSING_FILE))
    return replace(manifest, modes=modes), notices


def _find_differences(package: ExportPackage, manifest: Manifest, form: Format) -> Iterator[Rejection]:
    for file in form.files:
        mode = manifest.modes.get(file.name, ABSENT)
        if mode != ABSENT and file.file_name not in package.names:
            beside = name_lookalikes(file.file_name, package.lookalikes)
            yield Rejection(file.file_name, f"is missing; the manifest declares it {mode}{beside}")
        elif file.required and file.name not in form.made and mode == ABSENT and not _list_deltas(manifest, form):
            yield Rejection(file.file_name, "is required, but the manifest declares it absent")


def list_without_manifest(package: ExportPackage, form: Format, *missed: str) -> Contents:
    """The contents of an export without a manifest. `missed`: the names of files that the format has and the export has
    not. Raises RefusedExportError where a required file is missing."""
    skipped = {f"{name}.csv" for name in form.skipped}
    known = (*(file.file_name for file in form.files), *sorted(skipped))
    package, name_notices = recognize_names(package, known)
    package, other_notices = leave_out_others(package, known, (*missed, *(file.file_name for file in form.files)))
    refuse_if(Findings.of(_find_missing(package, form)))
    files = tuple(file for file in form.files if file.file_name in package.names)
    notices = (f"{name} holds no roster and is skipped" for name in sorted(package.names & skipped))
    return Contents(package, files, (*package.notices, *name_notices, *other_notices, *notices))


def _find_missing(package: ExportPackage, form: Format) -> Iterator[Rejection]:
    for file in form.files:
        if file.required and file.name not in form.made and file.file_name not in package.names:
            beside = name_lookalikes(file.file_name, package.lookalikes)
            yield Rejection(file.file_name, f"is missing; every export of {form.name} has it{beside}")
