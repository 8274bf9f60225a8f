"""`manifest.csv`: which version of OneRoster an export speaks, and which of its files it brings."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sync_scripts.formats import CsvFile, Format
from sync_scripts.package import UNREADABLE, Package
from sync_scripts.refusals import Findings, Refusal, RefusedExportError, refuse_if

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


def read_manifest(package: Package) -> Manifest:
    """Reads the manifest of a package. Raises RefusedExportError where it is missing or says something unknown."""
    if FILE_NAME not in package.names:
        raise RefusedExportError(Findings.of([Refusal(FILE_NAME, "is missing; every OneRoster export has one")]))
    rows = _read_rows(package)
    refuse_if(Findings.of(_find_bad_rows(rows)))
    values = {name: value for _, name, value in rows}
    return Manifest(
        values["oneroster.version"],
        # A blank mode is how some exporters say absent.
        {name.removeprefix(FILE_PREFIX): value or ABSENT for _, name, value in rows if name.startswith(FILE_PREFIX)},
        {name.removeprefix(FILE_PREFIX): line for line, name, _ in rows if name.startswith(FILE_PREFIX)},
    )


def _read_rows(package: Package) -> list[tuple[int, str, str]]:
    """(line, property, value) of every row."""

    def refuse(reason: str, line: int | None = None) -> RefusedExportError:
        return RefusedExportError(Findings.of([Refusal(FILE_NAME, reason, line)]))

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
    return [(line, row[0], row[1].strip()) for line, row in lines[1:]]


def _find_bad_rows(rows: list[tuple[int, str, str]]) -> Iterator[Refusal]:
    seen: set[str] = set()
    for line, name, value in rows:
        if name in seen:
            yield Refusal(FILE_NAME, "stands here a second time", line, "propertyName", name)
        elif name.startswith(FILE_PREFIX):
            if value not in (BULK, DELTA, ABSENT, ""):
                yield Refusal(FILE_NAME, "must be bulk, delta or absent", line, "value", value)
        elif name not in PROPERTIES:
            yield Refusal(FILE_NAME, "is no property of a manifest", line, "propertyName", name)
        else:
            known = PROPERTIES[name]
            if known is not None and value not in known:
                yield Refusal(FILE_NAME, f"{name} must be {' or '.join(known)}", line, "value", value)
        seen.add(name)
    for name in REQUIRED_PROPERTIES:
        if name not in seen:
            yield Refusal(FILE_NAME, f"{name} is missing")


@dataclass(frozen=True)
class Contents:
    """The files of an export that are loaded, and what there is to say about the others."""

    files: tuple[CsvFile, ...]
    notices: tuple[str, ...]


def list_contents(package: Package, manifest: Manifest, form: Format) -> Contents:
    """Compares the manifest with what the package holds. Raises RefusedExportError where the two differ, a required
    file is absent, or a file is none of the format's."""
    refuse_if(Findings.of(_find_differences(package, manifest, form)))
    files = tuple(file for file in form.files if manifest.modes.get(file.name) == BULK)
    notices = tuple(
        f"{name}.csv holds no roster and is skipped"
        for name in sorted(form.skipped)
        if manifest.modes.get(name, ABSENT) != ABSENT
    )
    return Contents(files, notices)


def _find_differences(package: Package, manifest: Manifest, form: Format) -> Iterator[Refusal]:
    known = {file.name for file in form.files} | form.skipped
    for name, mode in manifest.modes.items():
        line = manifest.lines[name]
        if name not in known:
            yield Refusal(FILE_NAME, f"is no file of {form.name}", line, "propertyName", FILE_PREFIX + name)
        elif mode != ABSENT and f"{name}.csv" not in package.names:
            yield Refusal(f"{name}.csv", f"is missing; the manifest declares it {mode}")
        elif mode == DELTA and name not in form.skipped:
            yield Refusal(FILE_NAME, "delta files are not taken yet; export in bulk", line, "value", mode)
    for file_name in sorted(package.names - {FILE_NAME}):
        name = file_name.removesuffix(".csv")
        if name == file_name or name not in known:
            yield Refusal(file_name, f"is no file of {form.name}")
        elif manifest.modes.get(name, ABSENT) == ABSENT:
            yield Refusal(file_name, "is there, but the manifest does not declare it")
    for file in form.files:
        if file.required and manifest.modes.get(file.name, ABSENT) == ABSENT:
            yield Refusal(file.file_name, "is required, but the manifest declares it absent")
