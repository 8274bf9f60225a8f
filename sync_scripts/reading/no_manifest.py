"""The contents of exports without a manifest: every file of the package, in bulk."""

from __future__ import annotations

from collections.abc import Iterator

from sync_scripts.formats.model import Format
from sync_scripts.reading.manifest import Contents
from sync_scripts.reading.package import Package, recognize_names
from sync_scripts.reading.rejections import Findings, Rejection, refuse_if


def list_without_manifest(package: Package, form: Format) -> Contents:
    """The contents of an export without a manifest. Raises RefusedExportError where a required file is missing, or the
    format has no file of that name."""
    skipped = {f"{name}.csv" for name in form.skipped}
    package, name_notices = recognize_names(package, (*(file.file_name for file in form.files), *sorted(skipped)))
    refuse_if(Findings.of(_find_differences(package, form, skipped)))
    files = tuple(file for file in form.files if file.file_name in package.names)
    notices = (f"{name} holds no roster and is skipped" for name in sorted(package.names & skipped))
    return Contents(package, files, (*name_notices, *notices))


def _find_differences(package: Package, form: Format, skipped: set[str]) -> Iterator[Rejection]:
    for file in form.files:
        if file.required and file.file_name not in package.names:
            yield Rejection(file.file_name, f"is missing; every export of {form.name} has it")
    for name in sorted(package.names - skipped - {file.file_name for file in form.files}):
        yield Rejection(name, f"is no file of {form.name}")
