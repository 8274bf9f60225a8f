"""The engine: loads one export into one feed, in one transaction. Readers see the roster before the run or after it.

The steps of a run are digest, stage, check, prepare (the desired state), compare, write, index, analyze, publish. The
steps before the write only read the roster. If a run fails, only its row in sync_runs remains, which exists from the
start of the run.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from psycopg2.errors import DeadlockDetected, UniqueViolation
from sqlalchemy.exc import DBAPIError

from roster_service.db.instants import find_today
from roster_service.db.tables import feeds, orgs, user_roles, users
from roster_service.feeds.change_history import CSV_COLUMNS
from roster_service.feeds.data_quality import preview_quality
from roster_service.feeds.feed_states import require_feed_name, require_no_pause
from roster_service.feeds.held_runs import HELD, drop_export
from roster_service.feeds.private_files import write_private_csv
from roster_service.feeds.roster_state import publish
from roster_service.feeds.run_outcomes import DONE, STALE, UNCHANGED
from roster_service.feeds.sync_lock import hold_lock, name_session
from roster_service.feeds.undo import find_undone
from sync_scripts.applying import writes
from sync_scripts.applying.changes import ADDED, CHANGE, Difference, compare, note_changed
from sync_scripts.applying.class_schools import place_enrollments
from sync_scripts.applying.desired_state import DesiredState, make_desired_state
from sync_scripts.applying.loaded_roster import make_loaded_roster
from sync_scripts.applying.org_tree import FeedDistrict, add_district
from sync_scripts.applying.parts import record_part_rows, refuse_delta_without_ids
from sync_scripts.applying.preview import make_preview, name_added_records, read_changes
from sync_scripts.checking.checks import CheckResult, check_files
from sync_scripts.engine import run_record
from sync_scripts.engine.hold_policy import HoldLimits, list_reasons, read_limits
from sync_scripts.engine.progress import Observer, Stopwatch
from sync_scripts.engine.report import Report, count_changes, count_stored, list_files, list_left_out, list_notices
from sync_scripts.engine.run import DEFAULTS, LoadRequest, Options, Run, begin
from sync_scripts.engine.run_record import HeldExport, RunRecord
from sync_scripts.engine.staged_export import StagedExport, add_source_findings, stage_export
from sync_scripts.engine.undo_refusals import refuse_unsafe_undo
from sync_scripts.formats.tolerated import list_lines
from sync_scripts.reading.completeness import find_written_at, refuse_changed, require_export, take_snapshot
from sync_scripts.reading.package import UNREADABLE, open_package
from sync_scripts.reading.registry import ONEROSTER, Family
from sync_scripts.reading.rejections import RefusedExportError
from sync_scripts.staging.convert import name_source_notices
from sync_scripts.staging.exclusions import leave_out_shifted_values
from sync_scripts.staging.line_hashes import LastLines, is_same_with_findings, store_digest
from sync_scripts.staging.retained import Retention
from sync_scripts.staging.row_fingerprints import are_fingerprints_trusted, covers_feed, renew_fingerprints
from sync_scripts.staging.stage import DamagedFileError, find_damage
from sync_scripts.staging.temporary import Follow

# How PostgreSQL refuses two runs that add the same ids.
COLLISIONS = (UniqueViolation, DeadlockDetected)


def load(
    engine: sa.Engine, feed_name: str, path: Path, *, family: Family = ONEROSTER, options: Options = DEFAULTS
) -> Report:
    """Loads the export at `path` (a folder or a zip) into the feed, and adds the feed if it is new.

    `engine` must have write access (`roster_service.db.engine.make_engine`) to a migrated database. Returns the report.
    Raises RefusedExportError for a refused export, IncompleteExportError for one that is changed meanwhile,
    LockedError while another run is under way, CommandError for a feed that does not accept the export or is paused,
    DatabaseUnavailableError if the database fails; in all these cases the run changes nothing. A held run changes
    nothing either, and its report has the outcome `held`. After a change, no worker uses anything that it stored
    before.
    """
    require_feed_name(feed_name)
    run = LoadRequest(engine, feed_name, path, family, options)
    with (
        run_record.translate_database_errors(),
        engine.connect() as connection,
        hold_lock(connection, feed_name, wait=options.wait, alone=_makes_indexes(connection, options)),
    ):
        if options.dry_run:
            report, kept = _load_package(connection, run, None)
        else:
            with connection.begin():
                require_no_pause(connection, feed_name, find_today(options.settings.time_zone))
            with (
                run_record.record_run(engine, feed_name, family.name, run.source, run.actor, **options.about) as record,
                run_record.translate_database_errors(),
            ):
                report, kept = _load_beside_others(connection, run, record)
    for export in kept:
        drop_export(export, options.settings.home)
    return report


def _makes_indexes(connection: sa.Connection, options: Options) -> bool:
    with connection.begin():
        return not options.dry_run and bool(writes.list_missing_indexes(connection))


def _load_beside_others(connection: sa.Connection, run: LoadRequest, record: RunRecord) -> tuple[Report, list[str]]:
    """As `_load_package`. Loads again if a run of another feed has added the same ids meanwhile, because the checks see
    its records then."""
    try:
        return _load_package(connection, run, record)
    except DBAPIError as error:
        if not isinstance(error.orig, COLLISIONS):
            raise
    return _load_package(connection, run, record)


def _load_package(connection: sa.Connection, run: LoadRequest, record: RunRecord | None) -> tuple[Report, list[str]]:
    """(the report, the kept exports of older held runs that are no longer needed). `record`: None for a dry run."""
    watch = Stopwatch(_show_steps(connection, run.feed_name, run.options.notify))
    require_export(run.path)
    if run.options.require_complete is not None:
        run.options.require_complete(run.path)
    with _watch_changes(run.path) as require_unchanged, open_package(run.path) as package:
        form, contents = run.family.read(package)
        # Now: at the end of the run another export may be there.
        written_at = find_written_at(run.path)
        try:
            # The end of the run is part of this transaction, so the approval of a run that is no longer held fails
            # before the commit.
            with connection.begin() as transaction:
                report, digest = run_steps(begin(connection, run, record, form, contents, written_at, watch))
                watch.stop()
                require_unchanged()
                if record is not None and report.outcome != HELD:
                    ended, kept = run_record.record_end(
                        connection,
                        record,
                        report,
                        run.options.approval,
                        actor=run.actor,
                        allow_mass_delete=run.options.allow_mass_delete,
                        undoes=run.options.undoes,
                    )
                    if digest is None or report.stamp is None or contents.deltas or not run.options.keeps_copy:
                        return ended, kept
                    export = HeldExport(run.path, run.family, digest)
                    ended, earlier = run_record.keep_for_undo(connection, record, ended, export, run.options.settings)
                    return ended, kept + earlier
                if record is not None:
                    # A held run has written no record, so the transaction has only the changes that it would make.
                    export = HeldExport(run.path, run.family, digest)
                    with run_record.record_hold(connection, record, report, export, run.options.settings.home) as held:
                        transaction.commit()
                    return held
                transaction.rollback()
        except DamagedFileError as error:
            raise find_damage(contents.package, contents.files, error) from None
    return report, []


@contextlib.contextmanager
def _watch_changes(path: Path) -> Iterator[Callable[[], None]]:
    """Yields a function that raises IncompleteExportError if somebody has changed the export since the block began.
    Raises that error, too, in place of one that the block raises about an export that is changed: it shows what is
    neither the old export nor the new one."""
    snapshot = take_snapshot(path)

    def require_unchanged() -> None:
        if take_snapshot(path) != snapshot:
            raise refuse_changed(path) from None

    try:
        yield require_unchanged
    except (RefusedExportError, *UNREADABLE):
        require_unchanged()
        raise


def _show_steps(connection: sa.Connection, feed_name: str, notify: Observer) -> Observer:
    """The function for a stopwatch that shows each step in the name of the session, and passes all events on."""

    def observe(event: Mapping[str, Any]) -> None:
        if event.get("part") == 0.0:
            name_session(connection, feed_name, event["step"])
        notify(event)

    return observe


@dataclass(frozen=True)
class _Comparison:
    """What a run knows before it writes: the staged export, the result of its checks, the district of the feed, the
    desired state, and its differences from the stored roster."""

    staged: StagedExport
    result: CheckResult
    district: FeedDistrict
    desired: DesiredState
    differences: list[Difference]


def run_steps(run: Run) -> tuple[Report, bytes | None]:
    """Runs the steps. Returns the report, and the digest of the export; None for a skipped export."""
    with run.watch.step("digest"):
        if run.is_last_export():
            return _report_last_export(run), None
    with run.watch.step("stage") as follow:
        staged = _stage(run, follow)
    digest = run.digest(staged)
    found = _compare(run, staged)
    if run.options.undoes is not None:
        refuse_unsafe_undo(run, run.options.undoes, found.result.retention, found.differences)
    is_same = is_same_with_findings(run.feed.last_digest, digest)
    report = _hold_excess(run, _report(run, found, is_same=is_same), found.differences, digest)
    if run.options.dry_run or report.outcome == HELD:
        run.keep_changes(found.differences, found.desired)
        return _preview(run, report, found), digest
    _store_export(run, staged, digest, has_findings=bool(report.findings))
    writes.forget_needs(run.connection, found.result.retention)
    if report.outcome == UNCHANGED:
        _store_fingerprints(run, found)
        return _call_stale(run, report) if is_same else report, digest
    return _apply(run, report, found), digest


def _stage(run: Run, follow: Follow) -> StagedExport:
    connection, form, contents = run.connection, run.form, run.contents
    # The changed lines alone do not determine converted and made rows, nor what follows from several files beside a
    # delta, so these runs stage every line.
    is_plain = not (contents.deltas or form.converted or contents.list_made(form))
    trusted = run.skips_known and is_plain and are_fingerprints_trusted(connection, run.feed.id)
    last = LastLines(run.feed.id, trusted, frozenset(run.feed.day_first))
    return stage_export(connection, run.request.feed_name, contents, form, last, follow, run.excluded)


def _compare(run: Run, staged: StagedExport) -> _Comparison:
    """Compares the staged export with the stored roster."""
    with run.watch.step("check") as follow:
        result = _check(run, staged, follow)
    with run.watch.step("prepare"):
        district = add_district(run.connection, run.request.feed_name, result.retention)
        placed = place_enrollments(run.connection, run.form.roster, result.retention)
        said = tuple(name_source_notices(placed.notices, run.form)) if run.form.converted else placed.notices
        run.refuse_deviations((*district.notices, *said))
        result = dataclasses.replace(result, notices=(*result.notices, *said))
        desired = make_desired_state(run.connection, run.form, result.retention, district, placed.moved)
    with run.watch.step("compare") as follow:
        differences = compare(run.connection, desired, result.retention, follow)
    return _Comparison(staged, result, district, desired, differences)


def _check(run: Run, staged: StagedExport, follow: Follow) -> CheckResult:
    """The result of the checks, with the notices of all steps. Raises RefusedExportError as the checks, and for
    deviations that a strict run does not tolerate."""
    retention = Retention(
        feed_id=run.feed.id,
        feed_name=run.request.feed_name,
        staged=staged.converted.files,
        deltas=run.contents.deltas,
        rejected=staged.converted.rejected,
        absent=staged.absent,
        made=run.contents.list_made(run.form),
    )
    refuse_delta_without_ids(run.connection, retention)
    result = check_files(run.connection, run.form.roster, retention, follow)
    if staged.source is not None:
        result = add_source_findings(staged.source, result, run.form)
    notices = (*run.contents.notices, *staged.stage.notices, *staged.normalized.notices, *result.notices)
    run.refuse_deviations(notices)
    findings = leave_out_shifted_values(result.findings, run.excluded)
    return dataclasses.replace(result, findings=findings, notices=notices)


def _report(run: Run, found: _Comparison, *, is_same: bool) -> Report:
    """`is_same`: whether the feed was last loaded from this export, with findings."""
    staged, result, differences = found.staged, found.result, found.differences
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
            *list_lines(found.district.notices),
            *list_notices(run.connection, run.form, staged.normalized.files, result.retention, found.desired),
            *([run_record.KNOWN] if is_same else []),
        ),
        dry_run=run.options.dry_run,
        written_at=run.written_at,
    )


def _report_last_export(run: Run) -> Report:
    """The report of a skipped export, which equals the export that the feed was last loaded from."""
    report = Report(
        feed=run.request.feed_name,
        format=run.form.name,
        source=run.request.source,
        outcome=UNCHANGED,
        counts=count_stored(run.connection, run.form, run.contents, run.feed.id),
        files=list_files(run.form, run.contents, {}, {}),
        seconds=run.watch.seconds,
        notices=(*list_lines(run.contents.notices), run_record.KNOWN),
        dry_run=run.options.dry_run,
        written_at=run.written_at,
    )
    return _call_stale(run, report)


def _call_stale(run: Run, report: Report) -> Report:
    """The report of an export that is as it was, with the outcome `stale` if the feed has had no other one for too many
    days: not one that a person gives, only the one at the path of the feed."""
    is_own = run.feed.path == str(run.request.path) and run.record is not None
    days = run_record.count_same_days(run.connection, run.feed.id) if is_own else 0
    if not is_own or days < run.options.settings.stale_days:
        return report
    words = "1 day" if days == 1 else f"{days} days"
    return dataclasses.replace(report, outcome=STALE, message=f"the export has been the same for {words}")


def _hold_excess(run: Run, report: Report, differences: list[Difference], digest: bytes) -> Report:
    """The report with the outcome `held` if the run has to be held."""
    if run.options.allow_mass_delete or run.options.undoes is not None:
        return report
    settings = run.options.settings
    limits = read_limits(run.connection, run.feed.id, HoldLimits.of(settings))
    reasons = list_reasons(run.connection, run.feed.id, report, run.held, differences, limits, settings.time_zone)
    if run.held is None and report.outcome == DONE:
        undone = find_undone(run.connection, run.feed.id, digest)
        reasons = [*([] if undone is None else [undone]), *reasons]
    return dataclasses.replace(report, outcome=HELD, message="; ".join(reasons)) if reasons else report


def _preview(run: Run, report: Report, found: _Comparison) -> Report:
    """The report of a held run or a dry run with a preview. Writes the changes to the file of the options."""
    connection, differences, desired = run.connection, found.differences, found.desired
    if (file := run.options.changes) is not None:
        changes = read_changes(connection, differences, desired)
        write_private_csv(file, CSV_COLUMNS, (line for change in changes for line in change.list_lines()))
    return dataclasses.replace(
        report,
        preview={
            **make_preview(connection, differences, desired, run.feed.id),
            "quality": _check_quality(run, report, found),
        },
        findings=name_added_records(connection, report.findings, differences),
    )


def _check_quality(run: Run, report: Report, found: _Comparison) -> list[dict[str, Any]]:
    """What the checks of data quality would find after the run."""
    roster = make_loaded_roster(run.connection, found.differences, found.desired, report.findings, run.feed.id)
    return [dataclasses.asdict(check) for check in preview_quality(run.connection, roster)]


def _store_export(run: Run, staged: StagedExport, digest: bytes, *, has_findings: bool) -> None:
    """Stores what the next run needs to know of this export."""
    store_digest(run.connection, run.feed.id, digest, has_findings=has_findings)
    day_first = sorted(staged.normalized.day_first)
    run.connection.execute(sa.update(feeds).where(feeds.c.id == run.feed.id).values(day_first=day_first))


def _apply(run: Run, report: Report, found: _Comparison) -> Report:
    """Writes the differences. Returns the report with the stamp and the revision."""
    connection, differences = run.connection, found.differences
    if run.record is None:
        raise ValueError("a dry run writes nothing")
    with run.watch.step("write") as follow:
        stamp = run_record.take_stamp(run.request.engine, run.record.number)
        run.keep_changes(differences, found.desired)
        noted = note_changed(connection, differences)
        writes.write_differences(connection, follow(differences), found.desired, run.feed.id, stamp)
        _store_fingerprints(run, found)
    with run.watch.step("index") as follow:
        # Those of all tables: then later loads find them, and need not be alone.
        writes.make_missing_indexes(connection, follow(writes.TABLES))
    with run.watch.step("analyze") as follow:
        writes.analyze(connection, follow(writes.list_outdated(connection, differences, run.form)))
    with run.watch.step("publish"):
        new_orgs = _list_new_orgs(connection, differences)
        revision = publish(connection, [run.feed.id], new_orgs=new_orgs, as_of=stamp, noted=noted)
    return dataclasses.replace(report, stamp=stamp, revision=revision)


def _store_fingerprints(run: Run, found: _Comparison) -> None:
    retention, desired, differences = found.result.retention, found.desired, found.differences
    trusted = covers_feed(run.connection, retention.staged, run.form, run.feed.id, run.contents.deltas)
    # The write step stores the fingerprints of new records.
    known = {
        difference.table: desired.records[difference.table].subquery("new")
        for difference in differences
        if difference.table in desired.records and not difference.all_new
    }
    renew_fingerprints(run.connection, known, retention, trusted=trusted)
    roles = desired.parts[user_roles].rows if users in known else None
    record_part_rows(run.connection, run.form.roster, roles, retention)


def _list_new_orgs(connection: sa.Connection, differences: list[Difference]) -> list[str]:
    """The ids of the orgs that the run adds."""
    added = next((each.rows for each in differences if each.table is orgs and each.counts.added), None)
    if added is None:
        return []
    return list(connection.scalars(sa.select(added.c.sourced_id).where(added.c[CHANGE] == ADDED)))
