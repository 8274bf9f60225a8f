"""An export in temporary tables: staged, normalized and converted."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import sqlalchemy as sa

from roster_service.feeds.exclusions import ExcludedPeople
from sync_scripts.checking.checks import CheckResult, check_files
from sync_scripts.formats.model import Format
from sync_scripts.reading.manifest import Contents
from sync_scripts.staging.convert import (
    Conversion,
    convert,
    list_remarks,
    make_courses,
    name_source_notices,
    name_sources,
)
from sync_scripts.staging.exclusions import leave_out, leave_out_findings
from sync_scripts.staging.line_hashes import LastLines
from sync_scripts.staging.normalize import NormalizedFiles, find_days_with_slashes, normalize
from sync_scripts.staging.retained import Absent, Retention
from sync_scripts.staging.row_fingerprints import find_absent, find_lines_to_restage
from sync_scripts.staging.stage import Stage, stage_files
from sync_scripts.staging.temporary import Follow


@dataclass(frozen=True)
class StagedExport:
    """An export in temporary tables: its staged files, the same files normalized, the records whose lines are gone
    (`absent`), and the OneRoster files that describe its records (`converted`). `source`: the result of the checks of
    the export's own files; None if they are OneRoster files, which the run checks later. `left_out`: the number of
    excluded people whom it had."""

    stage: Stage
    normalized: NormalizedFiles
    absent: Absent
    converted: Conversion
    source: CheckResult | None = None
    left_out: int = 0


def stage_export(
    connection: sa.Connection,
    feed_name: str,
    contents: Contents,
    form: Format,
    last: LastLines,
    follow: Follow,
    excluded: ExcludedPeople | None,
) -> StagedExport:
    """Stages an export, without the people whom the roster must not have. If the run turns out to need lines that
    staging left out, it stages the export once more with these lines. `follow`: of the step."""
    attempt = connection.begin_nested()
    stage = stage_files(connection, contents, form, last, follow)
    normalized = normalize(connection, stage.files, contents.deltas, last.day_first)
    left_out = 0 if form.converted else leave_out(connection, normalized.files, excluded)
    for name in contents.list_made(form):
        made, said = make_courses(connection, last.feed_id, feed_name, form.find_file(name), normalized.files)
        normalized = dataclasses.replace(
            normalized, files={**normalized.files, name: made}, notices=(*normalized.notices, *said)
        )
    absent = find_absent(connection, last.feed_id, stage.gone)
    # The order of their days follows from the whole column.
    whole = find_days_with_slashes(connection, stage.files) if last.trusted else ()
    if again := find_lines_to_restage(connection, normalized.files, absent, last.feed_id, whole):
        # The rollback drops the temporary tables too.
        attempt.rollback()
        return stage_export(connection, feed_name, contents, form, last.add_restaged(again), follow, excluded)
    attempt.commit()
    if not form.converted:
        return StagedExport(stage, normalized, absent, Conversion(normalized.files, {}), left_out=left_out)
    retention = Retention(last.feed_id, feed_name, normalized.files)
    source = check_files(connection, form, retention, follow)
    converted = convert(connection, form, source.retention)
    findings = leave_out_findings(source.findings, excluded)
    notices = (*source.notices, *list_remarks(connection, form, source.retention, converted))
    source = dataclasses.replace(source, findings=findings, notices=notices)
    left_out = leave_out(connection, converted.files, excluded)
    return StagedExport(stage, normalized, absent, converted, source, left_out)


def add_source_findings(source: CheckResult, converted: CheckResult, form: Format) -> CheckResult:
    """The result for the converted files, together with the findings and rejected rows of the export's own files."""
    return dataclasses.replace(
        converted,
        findings=source.findings + name_sources(converted.findings, form),
        notices=(*source.notices, *name_source_notices(converted.notices, form)),
        rejected={**source.rejected, **converted.rejected},
    )
