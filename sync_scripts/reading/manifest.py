"""`manifest.csv`: the OneRoster version of an export, and the mode of each of its files."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from sync_scripts.formats.model import CsvFile, Format
from sync_scripts.formats.tolerated import BLANK_MODE, MANIFEST_VERSION, PROPERTY_CASE, Deviation, describe_deviation
from sync_scripts.reading.lines import CleanLines
from sync_scripts.reading.package import UNREADABLE, Package, recognize_names
from sync_scripts.reading.rejections import Findings, RefusedExportError, Rejection, refuse_if

FILE_NAME = "manifest.csv"
HEADER = ["propertyName", "value"]
# A manifest has some twenty short lines.
MOST_BYTES = 65_536
FILE_PREFIX = "file."
BULK, DELTA, ABSENT = "bulk", "delta", "absent"
# The properties besides `file.*`, and the allowed values of each; None: any value.
PROPERTIES: Mapping[str, tuple[str, ...] | None] = {
    "manifest.version": ("1.0", "1"),
    "oneroster.version": ("1.1", "1.2"),
    "source.systemName": None,
    "source.systemCode": None,
}
REQUIRED_PROPERTIES = ("manifest.version", "oneroster.version")


@dataclass(frozen=True)
class Manifest:
    """The content of a manifest: the version, and the mode of each file (`bulk`, `delta` or `absent`) by its name
    without .csv."""

    version: str
    modes: Mapping[str, str]
    # The line of each file's mode, for findings.
    lines: Mapping[str, int]
    # The tolerated deviations.
    notices: tuple[str, ...] = ()


def read_manifest(package: Package, files: Collection[str]) -> Manifest:
    """Reads the manifest of a package. `files`: the names, without .csv, of all files that the manifest may name.
    Raises RefusedExportError where the manifest is missing or has an unknown property or value."""
    package, _ = recognize_names(package, [FILE_NAME])
    if FILE_NAME not in package.names:
        raise RefusedExportError(Findings.of([Rejection(FILE_NAME, "is missing; every OneRoster export has one")]))
    written, deviations = _read_rows(package)
    rows = [(line, _recognize(name, files), value) for line, name, value in written]
    name_notices = (
        describe_deviation(FILE_NAME, PROPERTY_CASE, f"{name}, read as {meant}")
        for (_, name, _), (_, meant, _) in zip(written, rows, strict=True)
        if name != meant
    )
    refuse_if(Findings.of(_find_bad_rows(rows)))
    values = {name: value for _, name, value in rows}
    return Manifest(
        values["oneroster.version"],
        # Some exporters leave the mode of an absent file blank.
        {name.removeprefix(FILE_PREFIX): value or ABSENT for _, name, value in rows if name.startswith(FILE_PREFIX)},
        {name.removeprefix(FILE_PREFIX): line for line, name, _ in rows if name.startswith(FILE_PREFIX)},
        (
            *(describe_deviation(FILE_NAME, deviation) for deviation in (*deviations, *_list_deviations(rows))),
            *name_notices,
        ),
    )


def _recognize(written: str, files: Collection[str]) -> str:
    """The known property that differs from the written one only in letter case, else the written one."""
    known = {name.lower(): name for name in (*PROPERTIES, *(FILE_PREFIX + file for file in files))}
    return known.get(written.lower(), written)


def _list_deviations(rows: list[tuple[int, str, str]]) -> Iterator[Deviation]:
    if any(name == "manifest.version" and value == MANIFEST_VERSION.example[0] for _, name, value in rows):
        yield MANIFEST_VERSION
    if any(name.startswith(FILE_PREFIX) and not value for _, name, value in rows):
        yield BLANK_MODE


def _read_rows(package: Package) -> tuple[list[tuple[int, str, str]], tuple[Deviation, ...]]:
    """((line, property, value) of every row, the tolerated deviations of the first line)."""

    def refuse(reason: str, line: int | None = None) -> RefusedExportError:
        return RefusedExportError(Findings.of([Rejection(FILE_NAME, reason, line)]))

    try:
        with package.open(FILE_NAME) as stream:
            data = stream.read(MOST_BYTES + 1)
    except UNREADABLE:
        raise refuse("is truncated or damaged") from None
    if len(data) > MOST_BYTES:
        raise refuse(f"is longer than {MOST_BYTES} bytes")
    try:
        reader = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True)
        lines = [(reader.line_num, row) for row in reader if row]
    except UnicodeDecodeError:
        raise refuse("is not UTF-8") from None
    except csv.Error as error:
        raise refuse(f"is no CSV: {error}") from None
    if not lines or lines[0][1] != HEADER:
        raise refuse(f"the header must be {','.join(HEADER)}", 1)
    for line, row in lines[1:]:
        if len(row) != len(HEADER):
            raise refuse(f"the row has {len(row)} cells, not {len(HEADER)}", line)
    return [(line, row[0], row[1].strip()) for line, row in lines[1:]], CleanLines(io.BytesIO(data)).deviations


def _find_bad_rows(rows: list[tuple[int, str, str]]) -> Iterator[Rejection]:
    seen: set[str] = set()
    for line, name, value in rows:
        if name in seen:
            yield Rejection(FILE_NAME, "stands here a second time", line, "propertyName", name)
        elif name.startswith(FILE_PREFIX):
            if value not in (BULK, DELTA, ABSENT, ""):
                yield Rejection(FILE_NAME, "must be bulk, delta or absent", line, "value", value)
        elif name not in PROPERTIES:
            yield Rejection(FILE_NAME, "is no property of a manifest", line, "propertyName", name)
        else:
            known = PROPERTIES[name]
            if known is not None and value not in known:
                yield Rejection(FILE_NAME, f"{name} must be {' or '.join(known)}", line, "value", value)
        seen.add(name)
    for name in REQUIRED_PROPERTIES:
        if name not in seen:
            yield Rejection(FILE_NAME, f"{name} is missing")


@dataclass(frozen=True)
class Contents:
    """The files of an export to load, the package that has them under their declared names, and notices for the
    report.

    `deltas`: the names of the delta files, which name only changed records. An export with a delta file may leave out
    any other file; the `silent` files are those, and count as deltas without rows."""

    package: Package
    files: tuple[CsvFile, ...]
    notices: tuple[str, ...]
    deltas: frozenset[str] = frozenset()
    silent: tuple[CsvFile, ...] = ()

    def list_names(self) -> tuple[str, ...]:
        """The names of the files to load."""
        return tuple(file.file_name for file in self.files)


def list_contents(package: Package, manifest: Manifest, form: Format) -> Contents:
    """Compares the manifest with the files of the package, and returns the files to load. Raises RefusedExportError
    where the two differ, a required file is absent, or the format has no such file."""
    known = (FILE_NAME, *(f"{name}.csv" for name in (*(file.name for file in form.files), *form.skipped)))
    package, name_notices = recognize_names(package, known)
    refuse_if(Findings.of(_find_differences(package, manifest, form)))
    files = tuple(file for file in form.files if manifest.modes.get(file.name, ABSENT) != ABSENT)
    deltas = _list_deltas(manifest, form)
    silent = tuple(file for file in form.files if file not in files) if deltas else ()
    skipped = (
        f"{name}.csv holds no roster and is skipped"
        for name in sorted(form.skipped)
        if manifest.modes.get(name, ABSENT) != ABSENT
    )
    notices = (*manifest.notices, *name_notices, *skipped)
    return Contents(package, files, notices, deltas | {file.name for file in silent}, silent)


def _list_deltas(manifest: Manifest, form: Format) -> frozenset[str]:
    return frozenset(file.name for file in form.files if manifest.modes.get(file.name) == DELTA)


def _find_differences(package: Package, manifest: Manifest, form: Format) -> Iterator[Rejection]:
    known = {file.name for file in form.files} | form.skipped
    for name, mode in manifest.modes.items():
        line = manifest.lines[name]
        if name not in known:
            yield Rejection(FILE_NAME, f"is no file of {form.name}", line, "propertyName", FILE_PREFIX + name)
        elif mode != ABSENT and f"{name}.csv" not in package.names:
            yield Rejection(f"{name}.csv", f"is missing; the manifest declares it {mode}")
    for file_name in sorted(package.names - {FILE_NAME}):
        name = file_name.removesuffix(".csv")
        if name == file_name or name not in known:
            yield Rejection(file_name, f"is no file of {form.name}")
        elif manifest.modes.get(name, ABSENT) == ABSENT:
            yield Rejection(file_name, "is there, but the manifest does not declare it")
    for file in form.files:
        mode = manifest.modes.get(file.name, ABSENT)
        if file.required and mode == ABSENT and not _list_deltas(manifest, form):
            yield Rejection(file.file_name, "is required, but the manifest declares it absent")
