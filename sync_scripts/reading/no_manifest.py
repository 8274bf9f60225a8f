"""The contents of exports without a manifest: every file of the package, in bulk."""

from __future__ import annotations

from collections.abc import Iterator

from sync_scripts.formats.model import Format
from sync_scripts.reading.manifest import Contents
from sync_scripts.reading.package import Package, leave_out_others, recognize_names
from sync_scripts.reading.rejections import Findings, Rejection, refuse_if


def list_without_manifest(package: Package, form: Format) -> Contents:
    """The contents of an export without a manifest. Raises RefusedExportError where a required file is missing."""
    skipped = {f"{name}.csv" for name in form.skipped}
    known = (*(file.file_name for file in form.files), *sorted(skipped))
    package, name_notices = recognize_names(package, known)
    package, other_notices = leave_out_others(package, known)
    refuse_if(Findings.of(_find_missing(package, form)))
    files = tuple(file for file in form.files if file.file_name in package.names)
    notices = (f"{name} holds no roster and is skipped" for name in sorted(package.names & skipped))
    return Contents(package, files, (*package.notices, *name_notices, *other_notices, *notices))


def _find_missing(package: Package, form: Format) -> Iterator[Rejection]:
    for file in form.files:
        if file.required and file.name not in form.made and file.file_name not in package.names:
            yield Rejection(file.file_name, f"is missing; every export of {form.name} has it")
