"""The steps of a run, each in a module of its own: digest, stage, check, prepare (the desired state), compare, write,
index, analyze, publish. The steps before the write only read the roster.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import sqlalchemy as sa

from roster_service.db.tables import feeds, orgs, user_roles, users
from roster_service.feeds.change_history import CSV_COLUMNS
from roster_service.feeds.exclusions import ExcludedPeople, read_excluded
from roster_service.feeds.held_runs import HELD
from roster_service.feeds.private_files import write_private_csv
from roster_service.feeds.roster_state import publish
from roster_service.feeds.run_outcomes import DONE, STALE, UNCHANGED
from sync_scripts.applying.change_log import record_changes
from sync_scripts.applying.changes import ADDED, CHANGE, Difference, compare
from sync_scripts.applying.desired_state import DesiredState, make_desired_state
from sync_scripts.applying.org_tree import FeedDistrict, add_district
from sync_scripts.applying.parts import record_part_rows, refuse_delta_without_ids
from sync_scripts.applying.preview import make_preview, name_added_records, read_changes
from sync_scripts.applying.writes import TABLES, analyze, list_outdated, make_missing_indexes, write_differences
from sync_scripts.checking.checks import CheckResult, check_files
from sync_scripts.engine.hold_policy import HeldRun, HoldLimits, list_reasons, read_held_run, read_limits
from sync_scripts.engine.options import LoadRequest, Options
from sync_scripts.engine.progress import Stopwatch
from sync_scripts.engine.report import Report, count_changes, count_stored, list_files, list_left_out, list_notices
from sync_scripts.engine.run_record import RunRecord
from sync_scripts.engine.runs import KNOWN, count_same_days, find_or_add_feed, take_stamp
from sync_scripts.engine.staged_export import StagedExport, add_source_findings, stage_export
from sync_scripts.formats.model import Format
from sync_scripts.formats.tolerated import Notice, Tolerated, list_lines
from sync_scripts.reading.completeness import find_written_at
from sync_scripts.reading.manifest import Contents
from sync_scripts.reading.rejections import Findings, Rejection, refuse_if
from sync_scripts.staging.line_hashes import LastLines, is_last_export, make_digest, read_digest, store_digest
from sync_scripts.staging.normalize import map_words
from sync_scripts.staging.retained import Retention
from sync_scripts.staging.row_fingerprints import are_fingerprints_trusted, covers_feed, renew_fingerprints
from sync_scripts.staging.temporary import Follow

# The planner settings of a run, until the transaction ends.
PLANNING = {
    # Enough to sort and join whole files in memory.
    "work_mem": "128MB",
    # A roster is in memory, so these costs make a run that needs one row in a hundred use an index instead of a scan.
    "random_page_cost": "0.1",
    "seq_page_cost": "0.1",
    # Rough statistics are enough for the run; autovacuum later makes finer ones.
    "default_statistics_target": "20",
}


@dataclass(frozen=True)
class Run:
    """A run in its transaction. `record`: None for a dry run; `form`, `contents`: with the words of the feed; `feed`:
    its row; `held`: the held run that an operator has approved, or None; `excluded`: the people whom the roster must
    not have."""

    request: LoadRequest
    connection: sa.Connection
    record: RunRecord | None
    form: Format
    contents: Contents
    feed: sa.Row[Any]
    is_new: bool
    held: HeldRun | None
    excluded: ExcludedPeople | None
    watch: Stopwatch

    @property
    def options(self) -> Options:
        """The options of the run."""
        return self.request.options

    @property
    def is_strict(self) -> bool:
        """Whether it refuses the export for any tolerated deviation."""
        return self.options.strict or self.feed.strict

    @cached_property
    def skips_known(self) -> bool:
        """Whether it skips what did not change. A strict run looks again at exports and lines of which a lenient one
        may have tolerated deviations."""
        return not self.is_strict or (self.feed.strict and not any(_list_deviations(self.contents.notices)))

    def refuse_deviations(self, notices: Iterable[Notice]) -> None:
        """Raises RefusedExportError for tolerated deviations, if the run is strict."""
        if self.is_strict:
            refuse_if(Findings.of(_list_deviations(notices)))

    def is_last_export(self) -> bool:
        """Whether the feed was last loaded from this export. Raises CommandError if it is not the one that was held."""
        if self.held is not None:
            self.held.require_digest(read_digest(self.contents, self.form))
            return False
        return self.skips_known and is_last_export(self.connection, self.feed.id, self.contents, self.form)

    def digest(self, staged: StagedExport) -> bytes:
        """The digest of the staged export. Raises CommandError if it is not the one that was held."""
        digest = make_digest(self.contents, self.form, staged.stage.digests)
        if self.held is not None:
            self.held.require_digest(digest)
        return digest

    def keep_changes(self, differences: list[Difference], desired: DesiredState) -> None:
        """Stores what the run is about to change, or would change if it were not held, unless the settings say
        otherwise."""
        if self.record is not None and self.options.settings.change_days:
            record_changes(self.connection, self.record.number, differences, desired)


def run_steps(run: Run) -> tuple[Report, bytes | None]:
    """Runs the steps. Returns the report, and the digest of the export; None for a skipped export."""
    connection, watch, feed_id = run.connection, run.watch, run.feed.id
    with watch.step("digest"):
        if run.is_last_export():
            return _report_last_export(run), None
    with watch.step("stage") as follow:
        staged = _stage(run, follow)
    digest = run.digest(staged)
    with watch.step("check") as follow:
        result = _check(run, staged, follow)
    with watch.step("prepare"):
        district = add_district(connection, run.request.feed_name, result.retention)
        desired = make_desired_state(connection, staged.converted.files, run.form, result.retention, district)
    with watch.step("compare") as follow:
        differences = compare(connection, desired, result.retention, follow)
    report = _hold_excess(run, _report(run, staged, result, district, desired, differences), differences)
    if run.options.dry_run or report.outcome == HELD:
        run.keep_changes(differences, desired)
        return _preview(run, report, differences, desired), digest
    store_digest(connection, feed_id, None if report.findings else digest)
    day_first = sorted(staged.normalized.day_first)
    connection.execute(sa.update(feeds).where(feeds.c.id == feed_id).values(day_first=day_first))
    if report.outcome == UNCHANGED:
        _store_fingerprints(run, result, desired, differences)
        return report, digest
    with watch.step("write") as follow:
        stamp = _take_stamp(run)
        run.keep_changes(differences, desired)
        write_differences(connection, follow(differences), desired, feed_id, stamp)
        _store_fingerprints(run, result, desired, differences)
    with watch.step("index") as follow:
        # Those of all tables: then later loads find them, and need not be alone.
        make_missing_indexes(connection, follow(TABLES))
    with watch.step("analyze") as follow:
        analyze(connection, follow(list_outdated(connection, differences, run.form)))
    with watch.step("publish"):
        revision = publish(connection, [feed_id], new_orgs=_list_new_orgs(connection, differences), as_of=stamp)
    return dataclasses.replace(report, stamp=stamp, revision=revision), digest


def begin(
    connection: sa.Connection,
    request: LoadRequest,
    record: RunRecord | None,
    form: Format,
    contents: Contents,
    watch: Stopwatch,
) -> Run:
    """Returns the run of a request whose transaction has begun. `form`, `contents`: of its export."""
    connection.execute(sa.select(*(sa.func.set_config(name, value, True) for name, value in PLANNING.items())))
    if record is None:
        feed_id, is_new = find_or_add_feed(connection, request.feed_name, request.family.name)
    else:
        feed_id, is_new = record.feed_id, record.is_new
    feed = connection.execute(sa.select(feeds).where(feeds.c.id == feed_id)).one()
    if feed.words is not None:
        form, contents = map_words(connection, feed.words, form, contents)
    approval = request.options.approval
    return Run(
        request=request,
        connection=connection,
        record=record,
        form=form,
        contents=contents,
        feed=feed,
        is_new=is_new,
        held=None if approval is None else read_held_run(connection, feed_id, approval.run),
        excluded=read_excluded(connection, request.options.settings.read_secret_key),
        watch=watch,
    )


def _stage(run: Run, follow: Follow) -> StagedExport:
    connection, form, contents = run.connection, run.form, run.contents
    # The changed lines alone do not determine converted and made rows, nor what follows from several files beside a
    # delta, so these runs stage every line.
    is_plain = not (contents.deltas or form.converted or contents.list_made(form))
    trusted = run.skips_known and is_plain and are_fingerprints_trusted(connection, run.feed.id)
    last = LastLines(run.feed.id, trusted, frozenset(run.feed.day_first))
    return stage_export(connection, run.request.feed_name, contents, form, last, follow, run.excluded)


def _check(run: Run, staged: StagedExport, follow: Follow) -> CheckResult:
    """The result of the checks, with the notices of all steps. Raises RefusedExportError as the checks, and for
    deviations that a strict run does not tolerate."""
    files, deltas = staged.converted.files, run.contents.deltas
    refuse_delta_without_ids(run.connection, files, run.feed.id, deltas)
    retention = Retention(
        feed_id=run.feed.id,
        staged=files,
        deltas=deltas,
        rejected=staged.converted.rejected,
        absent=staged.absent,
        made=run.contents.list_made(run.form),
    )
    result = check_files(run.connection, run.form, retention, follow)
    if staged.source is not None:
        result = add_source_findings(staged.source, result, run.form)
    notices = (*run.contents.notices, *staged.stage.notices, *staged.normalized.notices, *result.notices)
    run.refuse_deviations(notices)
    return dataclasses.replace(result, notices=notices)


def _report(
    run: Run,
    staged: StagedExport,
    result: CheckResult,
    district: FeedDistrict,
    desired: DesiredState,
    differences: list[Difference],
) -> Report:
    files = {**staged.normalized.files, **staged.converted.files}
    return Report(
        feed=run.request.feed_name,
        format=run.form.name,
        source=run.request.source,
        outcome=DONE if any(difference.counts.any for difference in differences) else UNCHANGED,
        counts=count_changes(differences, result, run.form),
        files=list_files(run.form, run.contents, staged.stage.rows, result.rejected),
        seconds=run.watch.seconds,
        findings=result.findings,
        notices=(
            *([f"the feed {run.request.feed_name} is new"] if run.is_new else []),
            *list_left_out(staged.left_out),
            *list_lines(result.notices),
            *([] if district.notice is None else [str(district.notice)]),
            *list_notices(run.connection, run.form, files, desired, run.feed.id),
        ),
        dry_run=run.options.dry_run,
        written_at=find_written_at(run.request.path),
    )


def _report_last_export(run: Run) -> Report:
    """The report of a skipped export, which equals the export that the feed was last loaded from. It is stale if the
    feed has had no other one for too many days: not one that a person gives, only the one at the path of the feed."""
    report = Report(
        feed=run.request.feed_name,
        format=run.form.name,
        source=run.request.source,
        outcome=UNCHANGED,
        counts=count_stored(run.connection, run.form, run.contents, run.feed.id),
        files=list_files(run.form, run.contents, {}, {}),
        seconds=run.watch.seconds,
        notices=(*list_lines(run.contents.notices), KNOWN),
        dry_run=run.options.dry_run,
        written_at=find_written_at(run.request.path),
    )
    is_own = run.feed.path == str(run.request.path) and run.record is not None
    days = count_same_days(run.connection, run.feed.id) if is_own else 0
    if not is_own or days < run.options.settings.stale_days:
        return report
    return dataclasses.replace(report, outcome=STALE, message=f"the export has been the same for {days} days")


def _hold_excess(run: Run, report: Report, differences: list[Difference]) -> Report:
    """The report with the outcome `held` if the run has to be held."""
    if run.options.allow_mass_delete:
        return report
    limits = read_limits(run.connection, run.feed.id, HoldLimits.of(run.options.settings))
    reasons = list_reasons(run.connection, run.feed.id, report, run.held, differences, limits)
    return dataclasses.replace(report, outcome=HELD, message="; ".join(reasons)) if reasons else report


def _preview(run: Run, report: Report, differences: list[Difference], desired: DesiredState) -> Report:
    """The report of a held run or a dry run with a preview. Writes the changes to the file of the options."""
    connection, file = run.connection, run.options.changes
    if file is not None:
        changes = read_changes(connection, differences, desired)
        write_private_csv(file, CSV_COLUMNS, (line for change in changes for line in change.list_lines()))
    return dataclasses.replace(
        report,
        preview=make_preview(connection, differences, desired, run.feed.id),
        findings=name_added_records(connection, report.findings, differences),
    )


def _store_fingerprints(run: Run, result: CheckResult, desired: DesiredState, differences: list[Difference]) -> None:
    retention = result.retention
    trusted = covers_feed(run.connection, retention.staged, run.form, run.feed.id, run.contents.deltas)
    # The write step stores the fingerprints of new records.
    known = {
        difference.table: desired.records[difference.table].subquery("new")
        for difference in differences
        if difference.table in desired.records and not difference.all_new
    }
    renew_fingerprints(run.connection, known, retention, trusted=trusted)
    roles = desired.parts[user_roles].rows if users in known else None
    record_part_rows(run.connection, run.form, roles, retention)


def _list_new_orgs(connection: sa.Connection, differences: list[Difference]) -> list[str]:
    """The ids of the orgs that the run adds."""
    added = next((each.rows for each in differences if each.table is orgs and each.counts.added), None)
    if added is None:
        return []
    return list(connection.scalars(sa.select(added.c.sourced_id).where(added.c[CHANGE] == ADDED)))


def _take_stamp(run: Run) -> datetime:
    if run.record is None:
        raise ValueError("a dry run writes nothing")
    return take_stamp(run.request.engine, run.record.number)


def _list_deviations(notices: Iterable[Notice]) -> Iterator[Rejection]:
    """The deviations for which a strict run refuses an export."""
    for notice in notices:
        if isinstance(notice, Tolerated) and not notice.deviation.allowed:
            yield Rejection(notice.file, notice.describe(), None, notice.column)
