"""The engine: one export into one feed, in one transaction. Readers see the roster before it or after it.

A chain of steps, each a function of its own module: stage -> check -> prepare -> compare -> write. Every step before
the last only reads the roster; whatever goes wrong, nothing of the run remains.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg2
from sqlalchemy import Connection, Engine, Table
from sqlalchemy.exc import DBAPIError

from roster_service.errors import DatabaseUnavailableError
from sync_scripts.changes import compare, write
from sync_scripts.checks import check
from sync_scripts.formats import CsvFile, Format
from sync_scripts.incoming import prepare
from sync_scripts.manifest import list_contents, read_manifest
from sync_scripts.notices import list_notices
from sync_scripts.oneroster import VERSIONS
from sync_scripts.package import Package, open_package
from sync_scripts.refusals import refuse_if
from sync_scripts.report import Report
from sync_scripts.runs import advance_state, next_stamp, open_feed, read_clock, record_run, take_lock
from sync_scripts.staging import DamagedFileError, find_damage, stage_files

# What `feeds.format` says of a feed that takes OneRoster CSV, whatever its version.
FAMILY = "oneroster"


class Stopwatch:
    """Seconds per step, in the order of the steps."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Measures what is done inside it."""
        begin = time.monotonic()
        yield
        self.seconds[name] = round(time.monotonic() - begin, 3)


def load(engine: Engine, feed_name: str, path: Path) -> Report:
    """Loads the OneRoster CSV export at `path` (a folder or a zip) into the feed, which is made where it is new.

    `engine` may write (`roster_service.db.engine.make_engine`); its database is migrated. Raises RefusedExportError
    where the export is refused, LockedError while another run is under way, CommandError for a feed that cannot take
    it, DatabaseUnavailableError where the database gives up; in all of these cases nothing has changed.
    """
    with open_package(path) as package:
        manifest = read_manifest(package)
        form = VERSIONS[manifest.version]
        contents = list_contents(package, manifest, form)
        try:
            with engine.begin() as connection:
                report = _run(connection, feed_name, package, form, contents.files)
        except DamagedFileError as error:
            raise find_damage(package, contents.files, error) from None
        except (DBAPIError, psycopg2.Error) as error:
            raise _to_unavailable(error) from None
    return report.with_notices(*contents.notices)


def _to_unavailable(error: DBAPIError | psycopg2.Error) -> DatabaseUnavailableError:
    """The server's first words; whatever else it says may quote a row."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    words = cause.diag.message_primary if isinstance(cause, psycopg2.Error) else None
    return DatabaseUnavailableError(f"the database gave up: {words or type(cause).__name__}")


def _run(connection: Connection, feed_name: str, package: Package, form: Format, files: tuple[CsvFile, ...]) -> Report:
    watch = Stopwatch()
    take_lock(connection, feed_name)
    feed_id, is_new = open_feed(connection, feed_name, FAMILY)
    started = read_clock(connection)
    with watch.step("stage"):
        stage = stage_files(connection, package, files)
    with watch.step("check"):
        refuse_if(check(connection, stage.files, form, feed_id))
    with watch.step("prepare"):
        incoming = prepare(connection, stage.files, form)
    with watch.step("compare"):
        differences = compare(connection, incoming, feed_id)
    with watch.step("write"):
        stamp = next_stamp(connection)
        counts = write(connection, differences, incoming, feed_id, stamp)
    changed = [table for table, count in counts.items() if count.any]
    with watch.step("analyze"):
        _analyze(connection, changed, form)
    revision = advance_state(connection, stamp) if changed else None
    report = Report(
        feed=feed_name,
        format=form.name,
        source=str(package.path),
        outcome="done" if changed else "unchanged",
        stamp=stamp if changed else None,
        revision=revision,
        counts={table.name: count for table, count in counts.items()},
        seconds=watch.seconds,
        notices=(
            *([f"the feed {feed_name} is new"] if is_new else []),
            *stage.notices,
            *list_notices(connection, form, stage.files, incoming, feed_id),
        ),
    )
    record_run(connection, feed_id=feed_id, started_at=started, **report.to_row())
    return report


def _analyze(connection: Connection, changed: list[Table], form: Format) -> None:
    """Tells the planner about the tables that were written: right after a load its guesses are far off."""
    tables = [*changed, *(part.table for part in form.parts if part.owner in changed)]
    for table in tables:
        connection.exec_driver_sql(f"ANALYZE {connection.dialect.identifier_preparer.format_table(table)}")
