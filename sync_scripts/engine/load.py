"""The engine: loads one export into one feed, in one transaction. Readers see the roster before the run or after it.

A run is a chain of steps, each in a module of its own: digest, stage, check, prepare (the desired state), compare,
write. The steps before the write only read the roster. If a run fails, only its row in sync_runs remains, which exists
from the start of the run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

import sqlalchemy as sa
from psycopg2.errors import DeadlockDetected, UniqueViolation
from sqlalchemy.exc import DBAPIError

from roster_service.change_log.actors import Actor, find_system_user
from roster_service.db.tables import feeds, orgs, user_roles, users
from roster_service.feeds.change_history import CSV_COLUMNS
from roster_service.feeds.exclusions import read_excluded
from roster_service.feeds.feed_names import require_feed_name
from roster_service.feeds.held_runs import HELD, OTHER_IDS, drop_export
from roster_service.feeds.pauses import find_today, require_no_pause
from roster_service.feeds.private_files import write_private_csv
from roster_service.feeds.run_outcomes import STALE
from roster_service.publication import publish
from roster_service.settings import Settings
from sync_scripts.applying.change_log import record_changes
from sync_scripts.applying.changes import ADDED, CHANGE, Difference, compare
from sync_scripts.applying.desired_state import DesiredState, make_desired_state
from sync_scripts.applying.feed_district import add_district
from sync_scripts.applying.identified_parts import record_part_rows, refuse_delta_without_ids
from sync_scripts.applying.indexes import TABLES, lacks_indexes, make_missing_indexes
from sync_scripts.applying.preview import make_preview, name_added_records, read_changes
from sync_scripts.applying.writes import write_differences
from sync_scripts.checking.checks import check_files
from sync_scripts.engine.counts import count_changes, count_stored, list_files
from sync_scripts.engine.hold_policy import (
    HeldRun,
    Limits,
    find_excess,
    find_older,
    find_other_ids,
    read_held_run,
    read_limits,
)
from sync_scripts.engine.notices import list_left_out, list_notices
from sync_scripts.engine.report import Report
from sync_scripts.engine.run_record import (
    Approval,
    HeldExport,
    RunRecord,
    record_end,
    record_hold,
    record_run,
    translate_database_errors,
)
from sync_scripts.engine.runs import KNOWN, count_same_days, find_or_add_feed, hold_lock, show_steps, take_stamp
from sync_scripts.engine.staged_export import add_source_findings, stage_export
from sync_scripts.engine.stopwatch import Observer, Stopwatch
from sync_scripts.formats.model import Format
from sync_scripts.formats.tolerated import Notice, Tolerated, list_lines
from sync_scripts.reading.completeness import find_written_at, refuse_changed, require_export, take_snapshot
from sync_scripts.reading.manifest import Contents
from sync_scripts.reading.package import open_package
from sync_scripts.reading.registry import ONEROSTER, Family
from sync_scripts.reading.rejections import Findings, Rejection, refuse_if
from sync_scripts.staging.export_digest import is_last_export, make_digest, read_digest, store_digest
from sync_scripts.staging.line_hashes import LastLines
from sync_scripts.staging.retained import Retention
from sync_scripts.staging.row_fingerprints import (
    are_fingerprints_trusted,
    covers_feed,
    renew_fingerprints,
)
from sync_scripts.staging.stage import DamagedFileError, find_damage
from sync_scripts.staging.word_map import map_words

# A run analyzes a table itself, without waiting for autovacuum, if it wrote at least this part of all its records.
ANALYZED_PERCENT = 5
# How PostgreSQL refuses two runs that add the same ids.
COLLISIONS = (UniqueViolation, DeadlockDetected)
# The records of each table, of all feeds, as the last ANALYZE or autovacuum has counted them; -1: none of them has.
_SIZES = sa.text(
    "SELECT relname, CAST(reltuples AS bigint) FROM pg_class "
    "WHERE relnamespace = CAST(current_schema() AS regnamespace) AND relkind = 'r'"
)
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


def _notify_nobody(_event: Mapping[str, Any]) -> None:
    pass


@dataclass(frozen=True)
class Options:
    """The options of a run."""

    settings: Settings = dataclasses.field(default_factory=Settings)
    # Report the changes without applying them.
    dry_run: bool = False
    # Never hold the run.
    allow_mass_delete: bool = False
    # Where a dry run writes the changes that it would make, with the values before and after.
    changes: TextIO | None = None
    # Refuse the export for any tolerated deviation.
    strict: bool = False
    # The approval of the held run whose export this is.
    approval: Approval | None = None
    # Wait for another run of the feed, instead of raising LockedError.
    wait: bool = False
    # Who loads the export; None: the system user of this process.
    actor: Actor | None = None
    # What the run calls its export, if the path is that of a copy; None: the path.
    source: str | None = None
    # Raises IncompleteExportError for an export that is not complete, which ends the run; None: the caller has looked.
    require_complete: Callable[[Path], None] | None = None
    # The engine calls it with the progress of each step.
    notify: Observer = _notify_nobody


DEFAULTS = Options()


@dataclass(frozen=True)
class _LoadRequest:
    """The arguments of `load`."""

    engine: sa.Engine
    feed_name: str
    path: Path
    family: Family
    options: Options

    @property
    def source(self) -> str:
        """What the run calls its export."""
        return self.options.source or str(self.path)

    @property
    def actor(self) -> Actor:
        """Who loads the export."""
        return self.options.actor or find_system_user(None)


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
    run = _LoadRequest(engine, feed_name, path, family, options)
    with (
        translate_database_errors(),
        engine.connect() as connection,
        hold_lock(connection, feed_name, wait=options.wait, alone=_makes_indexes(connection, options)),
    ):
        if options.dry_run:
            report, kept = _load_package(connection, run, None)
        else:
            with connection.begin():
                require_no_pause(connection, feed_name, find_today())
            with (
                record_run(engine, feed_name, family.name, run.source, run.actor) as record,
                translate_database_errors(),
            ):
                report, kept = _load_beside_others(connection, run, record)
    for export in kept:
        drop_export(export)
    return report


def _makes_indexes(connection: sa.Connection, options: Options) -> bool:
    with connection.begin():
        return not options.dry_run and lacks_indexes(connection)


def _load_beside_others(connection: sa.Connection, run: _LoadRequest, record: RunRecord) -> tuple[Report, list[str]]:
    """As `_load_package`. Loads again if a run of another feed has added the same ids meanwhile, because the checks see
    its records then."""
    try:
        return _load_package(connection, run, record)
    except DBAPIError as error:
        if not isinstance(error.orig, COLLISIONS):
            raise
    return _load_package(connection, run, record)


def _load_package(connection: sa.Connection, run: _LoadRequest, record: RunRecord | None) -> tuple[Report, list[str]]:
    """(the report, the kept exports of older held runs that are no longer needed). `record`: None for a dry run."""
    watch = Stopwatch(show_steps(connection, run.feed_name, run.options.notify))
    require_export(run.path)
    if run.options.require_complete is not None:
        run.options.require_complete(run.path)
    snapshot = take_snapshot(run.path)
    with open_package(run.path) as package:
        form, contents = run.family.read(package)
        try:
            # The end of the run is part of this transaction, so the approval of a run that is no longer held fails
            # before the commit.
            with connection.begin() as transaction:
                report, digest = _run_steps(connection, run, record, form, contents, watch)
                watch.stop()
                if take_snapshot(run.path) != snapshot:
                    raise refuse_changed(run.path)
                if record is not None and report.outcome != HELD:
                    return record_end(
                        connection,
                        record,
                        report,
                        run.options.approval,
                        actor=run.actor,
                        allow_mass_delete=run.options.allow_mass_delete,
                    )
                if record is not None:
                    # A held run has written no record, so the transaction has only the changes that it would make.
                    export = HeldExport(run.path, run.family, digest)
                    with record_hold(connection, record, report, export, run.options.settings.home) as held:
                        transaction.commit()
                    return held
                transaction.rollback()
        except DamagedFileError as error:
            raise find_damage(contents.package, contents.files, error) from None
    return report, []


def _run_steps(
    connection: sa.Connection,
    run: _LoadRequest,
    record: RunRecord | None,
    form: Format,
    contents: Contents,
    watch: Stopwatch,
) -> tuple[Report, bytes | None]:
    """(the report, the digest of the export; None for a skipped export)."""
    options = run.options
    connection.execute(sa.select(*(sa.func.set_config(name, value, True) for name, value in PLANNING.items())))
    feed_id, is_new = (
        find_or_add_feed(connection, run.feed_name, run.family.name)
        if record is None
        else (record.feed_id, record.is_new)
    )
    feed = connection.execute(sa.select(feeds).where(feeds.c.id == feed_id)).one()
    strict = options.strict or feed.strict
    # A strict run looks again at exports and lines of which a lenient one may have tolerated deviations.
    skips_known = not strict or (feed.strict and not any(_list_deviations(contents.notices)))
    if feed.words is not None:
        form, contents = map_words(connection, feed.words, form, contents)
    held = None if options.approval is None else read_held_run(connection, feed_id, options.approval.run)
    excluded = read_excluded(connection, options.settings.read_secret_key)
    with watch.step("digest"):
        if held is not None:
            held.require_digest(read_digest(contents, form))
        elif skips_known and is_last_export(connection, feed_id, contents, form):
            report = _report_last_export(connection, run, form, contents, feed_id, watch)
            is_own = feed.path == str(run.path) and record is not None
            return _find_stale(connection, report, feed_id, run.options.settings) if is_own else report, None
    # The changed lines alone do not determine converted and made rows, nor what follows from several files beside a
    # delta, so these runs stage every line.
    made = contents.list_made(form)
    is_plain = not (contents.deltas or form.converted or made)
    trusted = skips_known and is_plain and are_fingerprints_trusted(connection, feed_id)
    with watch.step("stage") as follow:
        last = LastLines(feed_id, trusted, frozenset(feed.day_first))
        staged = stage_export(connection, run.feed_name, contents, form, last, follow, excluded)
    stage, files = staged.stage, staged.converted.files
    digest = make_digest(contents, form, stage.digests)
    if held is not None:
        held.require_digest(digest)
    with watch.step("check") as follow:
        refuse_delta_without_ids(connection, files, feed_id, contents.deltas)
        retention = Retention(feed_id, files, contents.deltas, staged.converted.rejected, staged.absent, made=made)
        result = check_files(connection, form, retention, follow)
        if staged.source is not None:
            result = add_source_findings(staged.source, result, form)
    tolerated = (*contents.notices, *stage.notices, *staged.normalized.notices, *result.notices)
    if strict:
        refuse_if(Findings.of(_list_deviations(tolerated)))
    with watch.step("prepare"):
        district = add_district(connection, run.feed_name, result.retention)
        desired = make_desired_state(connection, files, form, result.retention, district)
    with watch.step("compare") as follow:
        differences = compare(connection, desired, result.retention, follow)
    report = Report(
        feed=run.feed_name,
        format=form.name,
        source=run.source,
        outcome="done" if any(it.counts.any for it in differences) else "unchanged",
        stamp=None,
        revision=None,
        counts=count_changes(differences, result, form),
        files=list_files(form, contents, stage.rows, result.rejected),
        seconds=watch.seconds,
        findings=result.findings,
        notices=(
            *([f"the feed {run.feed_name} is new"] if is_new else []),
            *list_left_out(staged.left_out),
            *list_lines(tolerated),
            *([] if district.notice is None else [str(district.notice)]),
            *list_notices(connection, form, {**staged.normalized.files, **files}, desired, feed_id),
        ),
        dry_run=options.dry_run,
        written_at=find_written_at(run.path),
    )
    report = _hold_excess(connection, run, report, held, feed_id, differences)
    if options.dry_run or report.outcome == HELD:
        _keep_changes(connection, run, record, differences, desired)
        return _preview(connection, report, differences, desired, options, feed_id), digest
    store_digest(connection, feed_id, None if report.findings else digest)
    day_first = sorted(staged.normalized.day_first)
    connection.execute(sa.update(feeds).where(feeds.c.id == feed_id).values(day_first=day_first))

    def store_fingerprints() -> None:
        trusted = covers_feed(connection, files, form, feed_id, contents.deltas)
        # The write step stores the fingerprints of new records.
        known = {
            it.table: desired.records[it.table].subquery("new")
            for it in differences
            if it.table in desired.records and not it.all_new
        }
        renew_fingerprints(connection, known, result.retention, trusted=trusted)
        record_part_rows(connection, form, desired.parts[user_roles].rows if users in known else None, result.retention)

    if report.outcome == "unchanged":
        store_fingerprints()
        return report, digest
    with watch.step("write") as follow:
        stamp = _take_stamp(run, record)
        _keep_changes(connection, run, record, differences, desired)
        write_differences(connection, follow(differences), desired, feed_id, stamp)
        store_fingerprints()
    with watch.step("index") as follow:
        # Those of all tables: then later loads find them, and need not be alone.
        make_missing_indexes(connection, follow(TABLES))
    with watch.step("analyze") as follow:
        _analyze(connection, follow(_list_written(_find_outdated(connection, differences), form)))
    with watch.step("publish"):
        new_orgs = _list_new_orgs(connection, differences)
        revision = publish(connection, [feed_id], new_orgs=new_orgs, as_of=stamp)
    return dataclasses.replace(report, stamp=stamp, revision=revision), digest


def _list_new_orgs(connection: sa.Connection, differences: list[Difference]) -> list[str]:
    """The ids of the orgs that the run adds."""
    rows = next((it.rows for it in differences if it.table is orgs and it.counts.added), None)
    if rows is None:
        return []
    return list(connection.scalars(sa.select(rows.c.sourced_id).where(rows.c[CHANGE] == ADDED)))


def _take_stamp(run: _LoadRequest, record: RunRecord | None) -> datetime:
    if record is None:
        raise ValueError("a dry run writes nothing")
    return take_stamp(run.engine, record.number)


def _keep_changes(
    connection: sa.Connection,
    run: _LoadRequest,
    record: RunRecord | None,
    differences: list[Difference],
    desired: DesiredState,
) -> None:
    """Stores what the run is about to change, or would change if it were not held, unless the settings say
    otherwise."""
    if record is not None and run.options.settings.change_days:
        record_changes(connection, record.number, differences, desired)


def _hold_excess(
    connection: sa.Connection,
    run: _LoadRequest,
    report: Report,
    held: HeldRun | None,
    feed_id: int,
    differences: list[Difference],
) -> Report:
    """The report with the outcome `held` if the run has to be held."""
    if run.options.allow_mass_delete:
        return report
    limits = read_limits(connection, feed_id, Limits.of(run.options.settings))
    excess = list(find_excess(report.counts, report.files, limits) if held is None else held.find_excess(report.counts))
    if held is None and (older := find_older(connection, feed_id, report, limits)) is not None:
        excess.insert(0, older)
    if held is None or OTHER_IDS not in held.message:
        excess[:0] = find_other_ids(connection, differences)
    elif excess:
        # The operator approved this reason, and the next approval needs to know of it.
        excess.insert(0, held.message.split("; ")[0])
    return dataclasses.replace(report, outcome=HELD, message="; ".join(excess)) if excess else report


def _preview(
    connection: sa.Connection,
    report: Report,
    differences: list[Difference],
    desired: DesiredState,
    options: Options,
    feed_id: int,
) -> Report:
    """The report of a held run or a dry run with a preview. Writes the changes to the file of the options."""
    if options.changes is not None:
        changes = read_changes(connection, differences, desired)
        write_private_csv(options.changes, CSV_COLUMNS, (line for change in changes for line in change.list_lines()))
    return dataclasses.replace(
        report,
        preview=make_preview(connection, differences, desired, feed_id),
        findings=name_added_records(connection, report.findings, differences),
    )


def _report_last_export(
    connection: sa.Connection, run: _LoadRequest, form: Format, contents: Contents, feed_id: int, watch: Stopwatch
) -> Report:
    """The report of a skipped export, which equals the export that the feed was last loaded from."""
    return Report(
        feed=run.feed_name,
        format=form.name,
        source=run.source,
        outcome="unchanged",
        stamp=None,
        revision=None,
        counts=count_stored(connection, form, contents, feed_id),
        files=list_files(form, contents, {}, {}),
        seconds=watch.seconds,
        notices=(*list_lines(contents.notices), KNOWN),
        dry_run=run.options.dry_run,
        written_at=find_written_at(run.path),
    )


def _find_stale(connection: sa.Connection, report: Report, feed_id: int, settings: Settings) -> Report:
    """The report of the same export as stale, if the feed has had no other one for too many days. An export that a
    person gives is never stale, only the one at the path of the feed."""
    days = count_same_days(connection, feed_id)
    if days < settings.stale_days:
        return report
    return dataclasses.replace(report, outcome=STALE, message=f"the export has been the same for {days} days")


def _list_deviations(notices: Iterable[Notice]) -> Iterator[Rejection]:
    """The deviations for which a strict run refuses an export."""
    for notice in notices:
        if isinstance(notice, Tolerated) and not notice.deviation.allowed:
            yield Rejection(notice.file, notice.describe(), None, notice.column)


def _list_written(differences: list[Difference], form: Format) -> list[sa.Table]:
    """The tables of the differences that have changes, with their tables of parts."""
    written = [it.table for it in differences if it.counts.any]
    return [*written, *(part.table for part in form.parts if part.owner in written)]


def _find_outdated(connection: sa.Connection, differences: list[Difference]) -> list[Difference]:
    """The differences that write so much of a table that its planner statistics are out of date."""
    sizes: dict[str, int] = {row[0]: row[1] for row in connection.execute(_SIZES)}
    return [
        it
        for it in differences
        if (it.counts.written + it.counts.tombstoned) * 100 >= ANALYZED_PERCENT * max(sizes[it.table.name], 1)
    ]


def _analyze(connection: sa.Connection, tables: Iterable[sa.Table]) -> None:
    """Makes new planner statistics for tables, because the old ones are far off right after a load."""
    for table in tables:
        # SKIP_LOCKED: a load of another feed that has analyzed the table keeps its lock until it ends.
        connection.exec_driver_sql(
            f"ANALYZE (SKIP_LOCKED) {connection.dialect.identifier_preparer.format_table(table)}"
        )
