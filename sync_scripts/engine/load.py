"""The engine: loads one export into one feed, in one transaction. Readers see the roster before the run or after it.

If a run fails, only its row in sync_runs remains, which exists from the start of the run. `steps.py` has its steps.
"""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from psycopg2.errors import DeadlockDetected, UniqueViolation
from sqlalchemy.exc import DBAPIError

from roster_service.feeds.feed_states import find_today, require_feed_name, require_no_pause
from roster_service.feeds.held_runs import HELD, drop_export
from sync_scripts.applying.writes import lacks_indexes
from sync_scripts.engine.options import DEFAULTS, LoadRequest, Options
from sync_scripts.engine.progress import Stopwatch
from sync_scripts.engine.report import Report
from sync_scripts.engine.run_record import (
    HeldExport,
    RunRecord,
    record_end,
    record_hold,
    record_run,
    translate_database_errors,
)
from sync_scripts.engine.runs import hold_lock, show_steps
from sync_scripts.engine.steps import begin, run_steps
from sync_scripts.reading.completeness import refuse_changed, require_export, take_snapshot
from sync_scripts.reading.package import open_package
from sync_scripts.reading.registry import ONEROSTER, Family
from sync_scripts.staging.stage import DamagedFileError, find_damage

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
                report, digest = run_steps(begin(connection, run, record, form, contents, watch))
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
