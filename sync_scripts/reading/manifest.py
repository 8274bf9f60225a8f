"""`manifest.csv`: which version of OneRoster an export speaks, and which of its files it brings."""

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
# The properties beside `file.*`, and what each may say; None: anything.
PROPERTIES: Mapping[str, tuple[str, ...] | None] = {
    "manifest.version": ("1.0", "1"),
    "oneroster.version": ("1.1", "1.2"),
    "source.systemName": None,
    "source.systemCode": None,
}
REQUIRED_PROPERTIES = ("manifest.version", "oneroster.version")


@dataclass(frozen=True)
class Manifest:
    """What the manifest says: the version, and per file (its name without .csv) `bulk`, `delta` or `absent`."""

    version: str
    modes: Mapping[str, str]
    # Where each file's mode stands, for refusals.
    lines: Mapping[str, int]
    # What was put up with.
    notices: tuple[str, ...] = ()


def read_manifest(package: Package, files: Collection[str]) -> Manifest:
    """Reads the manifest of a package; `files`: the names, without .csv, of all files that it may speak of. Raises
    RefusedExportError where it is missing or says something unknown."""
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
        # A blank mode is how some exporters say absent.
        {name.removeprefix(FILE_PREFIX): value or ABSENT for _, name, value in rows if name.startswith(FILE_PREFIX)},
        {name.removeprefix(FILE_PREFIX): line for line, name, _ in rows if name.startswith(FILE_PREFIX)},
        (
            *(describe_deviation(FILE_NAME, deviation) for deviation in (*deviations, *_list_deviations(rows))),
            *name_notices,
        ),
    )


def _recognize(written: str, files: Collection[str]) -> str:
    """The property that is meant, where only its letter case is another one."""
    known = {name.lower(): name for name in (*PROPERTIES, *(FILE_PREFIX + file for file in files))}
    return known.get(written.lower(), written)


def _list_deviations(rows: list[tuple[int, str, str]]) -> Iterator[Deviation]:
    if any(name == "manifest.version" and value == MANIFEST_VERSION.example[0] for _, name, value in rows):
        yield MANIFEST_VERSION
    if any(name.startswith(FILE_PREFIX) and not value for _, name, value in rows):
        yield BLANK_MODE


def _read_rows(package: Package) -> tuple[list[tuple[int, str, str]], tuple[Deviation, ...]]:
    """((line, property, value) of every row, the quirks of the first line)."""

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
    """The files of an export that are loaded, the package under whose names they are found, and what there is to
    say about it all.

    `deltas`: the names of the files that say what has changed, and nothing about other records. An export with such a
    file may leave out any other: of the `silent` ones it says that nothing has changed there."""

    package: Package
    files: tuple[CsvFile, ...]
    notices: tuple[str, ...]
    deltas: frozenset[str] = frozenset()
    silent: tuple[CsvFile, ...] = ()


def list_contents(package: Package, manifest: Manifest, form: Format) -> Contents:
    """Compares the manifest with what the package holds. Raises RefusedExportError where the two differ, a required
    file is absent, or a file is none of the format's."""
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
    said = (*manifest.notices, *name_notices, *skipped)
    return Contents(package, files, said, deltas | {file.name for file in silent}, silent)


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
