"""The engine: one export into one feed, in one transaction. Readers see the roster before it or after it.

A chain of steps, each a function of its own module: digest -> stage -> check -> prepare -> compare -> write. Every
step before the last only reads the roster; whatever goes wrong, nothing of the run remains but its row in sync_runs,
which is there from its start.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, Engine, Table, func, select

from roster_service.db.held_runs import HELD, drop_export
from roster_service.db.tables import user_roles, users
from roster_service.publication import publish
from roster_service.settings import Settings
from sync_scripts.applying.changes import Difference, compare, write
from sync_scripts.applying.desired_state import make_desired_state
from sync_scripts.applying.feed_district import add_district
from sync_scripts.applying.identified_parts import record_part_rows, refuse_delta_without_ids
from sync_scripts.applying.indexes import make_missing_indexes
from sync_scripts.checking.checks import check_files
from sync_scripts.engine.counts import count_changes, count_stored
from sync_scripts.engine.hold_policy import Limits, find_excess, read_held_run, read_limits
from sync_scripts.engine.notices import list_notices
from sync_scripts.engine.report import Report
from sync_scripts.engine.run_record import (
    HeldExport,
    RunRecord,
    record_end,
    record_hold,
    record_run,
    translate_database_errors,
)
from sync_scripts.engine.runs import find_or_add_feed, hold_lock, make_next_stamp, require_feed_name
from sync_scripts.engine.staged_export import add_source_findings, stage_export
from sync_scripts.formats.model import Format
from sync_scripts.reading.manifest import Contents
from sync_scripts.reading.package import open_package
from sync_scripts.reading.registry import ONEROSTER, Family
from sync_scripts.staging.export_digest import is_last_export, make_digest, read_digest, store_digest
from sync_scripts.staging.line_hashes import LastLines
from sync_scripts.staging.retained import Retention
from sync_scripts.staging.row_fingerprints import (
    are_fingerprints_trusted,
    covers_feed,
    renew_fingerprints,
)
from sync_scripts.staging.stage import DamagedFileError, find_damage

# What a run goes through; one that changes nothing ends after the fifth, one of a known export after the first.
STEPS = ("digest", "stage", "check", "prepare", "compare", "write", "index", "analyze")
# What is said of an export that is not loaded again.
KNOWN = "every file is as it was when it was last loaded"
# A table of which so much is written is analyzed at once, and not when the server next comes round to it.
ANALYZED_PERCENT = 5
# How the statements of a run are planned, until the transaction ends.
PLANNING = {
    # For sorting and joining whole files.
    "work_mem": "128MB",
    # A roster lies in memory: a night that looks at one row in a hundred looks them up, and does not read all others.
    "random_page_cost": "0.1",
    "seq_page_cost": "0.1",
    # Rough statistics do; the server makes finer ones of what stays, when it next comes round.
    "default_statistics_target": "20",
}


def _notify_nobody(_step: str, _seconds: float) -> None:
    pass


@dataclass(frozen=True)
class Options:
    """How a run is done, beside what it loads."""

    settings: Settings = dataclasses.field(default_factory=Settings)
    # Find out what would be done, and do nothing.
    dry_run: bool = False
    # Never hold.
    allow_mass_delete: bool = False
    # The held run whose export this is: with it, it is approved, as far as it was shown.
    approves: int | None = None
    # Called after each step, with its name and its seconds.
    notify: Callable[[str, float], None] = _notify_nobody


DEFAULTS = Options()


class Stopwatch:
    """Seconds per step, in the order of the steps."""

    def __init__(self, notify: Callable[[str, float], None]) -> None:
        self.seconds: dict[str, float] = {}
        self._notify = notify

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Measures what is done inside it."""
        begin = time.monotonic()
        yield
        self.seconds[name] = round(self.seconds.get(name, 0.0) + time.monotonic() - begin, 3)
        self._notify(name, self.seconds[name])


@dataclass(frozen=True)
class _LoadRequest:
    """What a run is about."""

    engine: Engine
    feed_name: str
    path: Path
    family: Family
    options: Options


def load(
    engine: Engine, feed_name: str, path: Path, *, family: Family = ONEROSTER, options: Options = DEFAULTS
) -> Report:
    """Loads the export at `path` (a folder or a zip) into the feed, which is made where it is new.

    `engine` may write (`roster_service.db.engine.make_engine`); its database is migrated. Raises RefusedExportError
    where the export is refused, LockedError while another run is under way, CommandError for a feed that cannot take
    it, DatabaseUnavailableError where the database gives up; in all of these cases nothing has changed. A run that
    would do too much changes nothing either: its report says `held`. Where something has changed, no worker goes any
    longer by what was before.
    """
    require_feed_name(feed_name)
    run = _LoadRequest(engine, feed_name, path, family, options)
    with translate_database_errors(), engine.connect() as connection, hold_lock(connection, feed_name):
        if options.dry_run:
            report, kept = _load(connection, run, None)
        else:
            with record_run(engine, feed_name, family.name, path) as record, translate_database_errors():
                report, kept = _load(connection, run, record)
    for export in kept:
        drop_export(export)
    return report


def _load(connection: Connection, run: _LoadRequest, record: RunRecord | None) -> tuple[Report, list[str]]:
    """(the report, exports of older held runs that nobody needs any more). `record`: None where none is left."""
    with open_package(run.path) as package:
        form, contents = run.family.read(package)
        try:
            # What cannot be closed any more is known before the transaction ends.
            with connection.begin() as transaction:
                report, digest = _run(connection, run, record, form, contents)
                if record is not None and report.outcome != HELD:
                    return record_end(connection, record, report, run.options.approves)
                transaction.rollback()
        except DamagedFileError as error:
            raise find_damage(contents.package, contents.files, error) from None
    if record is None:
        return report, []
    return record_hold(run.engine, record, report, HeldExport(run.path, run.family, digest), run.options.settings.home)


def _run(
    connection: Connection,
    run: _LoadRequest,
    record: RunRecord | None,
    form: Format,
    contents: Contents,
) -> tuple[Report, bytes | None]:
    """(the report, the digest of all that was read; None of an export that is known)."""
    options = run.options
    watch = Stopwatch(options.notify)
    connection.execute(select(*(func.set_config(name, value, True) for name, value in PLANNING.items())))
    feed_id, is_new = (
        find_or_add_feed(connection, run.feed_name, run.family.name)
        if record is None
        else (record.feed_id, record.is_new)
    )
    held = None if options.approves is None else read_held_run(connection, feed_id, options.approves)
    with watch.step("digest"):
        if held is not None:
            held.require_digest(read_digest(contents, form))
        elif is_last_export(connection, feed_id, contents, form):
            return _report_last_export(connection, run, form, contents, feed_id, watch), None
    # Beside a delta, what follows from several files cannot be told from their changes alone; nor can derived rows.
    trusted = are_fingerprints_trusted(connection, feed_id) and not contents.deltas and not form.converted
    with watch.step("stage"):
        staged = stage_export(connection, run.feed_name, contents, form, LastLines(feed_id, trusted))
    stage, files = staged.stage, staged.converted.files
    digest = make_digest(contents, form, stage.digests)
    if held is not None:
        held.require_digest(digest)
    with watch.step("check"):
        refuse_delta_without_ids(connection, files, feed_id, contents.deltas)
        retention = Retention(feed_id, files, contents.deltas, staged.converted.rejected, staged.absent)
        result = check_files(connection, form, retention)
        if staged.source is not None:
            result = add_source_findings(staged.source, result, form)
    with watch.step("prepare"):
        district = add_district(connection, run.feed_name, result.retention)
        desired = make_desired_state(connection, files, form, result.retention, district)
    with watch.step("compare"):
        differences = compare(connection, desired, result.retention)
    report = Report(
        feed=run.feed_name,
        format=form.name,
        source=str(run.path),
        outcome="done" if any(it.counts.any for it in differences) else "unchanged",
        stamp=None,
        revision=None,
        counts=count_changes(differences, result, form),
        seconds=watch.seconds,
        findings=result.findings,
        notices=(
            *([f"the feed {run.feed_name} is new"] if is_new else []),
            *contents.notices,
            *stage.notices,
            *staged.normalized.notices,
            *([] if district.notice is None else [district.notice]),
            *list_notices(connection, form, {**staged.normalized.files, **files}, desired, feed_id),
        ),
        dry_run=options.dry_run,
    )
    if not options.allow_mass_delete:
        limits = read_limits(connection, feed_id, Limits.of(options.settings))
        found = find_excess(report.counts, limits) if held is None else held.find_excess(report.counts)
        if excess := tuple(found):
            return dataclasses.replace(report, outcome=HELD, message="; ".join(excess)), digest
    if options.dry_run:
        return report, digest
    store_digest(connection, feed_id, None if report.findings else digest)

    def remember() -> None:
        trusted = covers_feed(connection, files, form, feed_id, contents.deltas)
        # Of new records, the fingerprints are written with them.
        known = {it.table: desired.records[it.table].subquery("new") for it in differences if not it.all_new}
        renew_fingerprints(connection, known, result.retention, trusted=trusted)
        record_part_rows(connection, form, desired.parts[user_roles].rows if users in known else None, result.retention)

    if report.outcome == "unchanged":
        remember()
        return report, digest
    with watch.step("write"):
        stamp = make_next_stamp(connection)
        write(connection, differences, desired, feed_id, stamp)
        remember()
    with watch.step("index"):
        make_missing_indexes(connection, _list_written(differences, form))
    with watch.step("analyze"):
        _analyze(connection, _list_written([it for it in differences if _needs_analyze(it)], form))
    return dataclasses.replace(
        report, stamp=stamp, revision=publish(connection, options.settings.rendition_megabytes, as_of=stamp)
    ), digest


def _report_last_export(
    connection: Connection, run: _LoadRequest, form: Format, contents: Contents, feed_id: int, watch: Stopwatch
) -> Report:
    """The report of an export that was loaded before, and is what the feed's records are made of."""
    return Report(
        feed=run.feed_name,
        format=form.name,
        source=str(run.path),
        outcome="unchanged",
        stamp=None,
        revision=None,
        counts=count_stored(connection, form, contents, feed_id),
        seconds=watch.seconds,
        notices=(*contents.notices, KNOWN),
        dry_run=run.options.dry_run,
    )


def _list_written(differences: list[Difference], form: Format) -> list[Table]:
    """The tables that were written, with their parts."""
    written = [it.table for it in differences if it.counts.any]
    return [*written, *(part.table for part in form.parts if part.owner in written)]


def _needs_analyze(difference: Difference) -> bool:
    """Whether so much of a table was written that the planner's guesses are off."""
    counts = difference.counts
    return (counts.written + counts.tombstoned) * 100 >= ANALYZED_PERCENT * max(counts.stored, 1)


def _analyze(connection: Connection, tables: list[Table]) -> None:
    """Tells the planner about tables: right after a load its guesses are far off."""
    for table in tables:
        connection.exec_driver_sql(f"ANALYZE {connection.dialect.identifier_preparer.format_table(table)}")
