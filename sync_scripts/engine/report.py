"""The report of a run: its counts and notices, as a value, as JSON, and as a table for a terminal."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from rich.table import Table as Grid

from roster_service.db import tables
from roster_service.db.tables import ROSTER_TABLES
from roster_service.feeds.run_history import ABSENT, PURGED, TYPES, ReadFile
from roster_service.feeds.run_outcomes import LOADED_OUTCOMES, PARTIAL, STALE
from sync_scripts.applying.changes import Counts, Difference
from sync_scripts.applying.desired_state import DesiredState
from sync_scripts.applying.preview import RunPreview
from sync_scripts.checking.checks import CheckResult
from sync_scripts.formats.conversion import DISTRICT
from sync_scripts.formats.model import METADATA, CsvFile, Format, Staged, keep_key
from sync_scripts.reading.manifest import BULK, DELTA, Contents
from sync_scripts.reading.rejections import NO_FINDINGS, SHOWN, Findings
from sync_scripts.staging.retained import ACTIVE, Retention

# The part of a preview, and of the rows of its other parts, that has values of records.
SAMPLES = "samples"


@dataclass(frozen=True)
class Report:
    """The report of a run. `outcome`: `done`, `unchanged` if the roster already equalled the export, `stale` if that is
    so for days, or `held`; the counts of a held run are those that it would have made; `stamp`, `revision`: the
    dateLastModified of every change of the run, and the roster's new revision, None if nothing changed; `findings`: the
    reasons of rejected rows, the run has loaded the others; `purged`: by type, the records that it deleted for good;
    `message`: why it is held, or stale; `preview`: what would vanish, and samples, of a held run and of a dry run;
    `run`: its number in sync_runs, None for a dry run, which has no row there; `written_at`: when the export was
    written, None if nothing says it."""

    feed: str
    format: str
    source: str
    outcome: str
    counts: Mapping[str, Counts]
    seconds: Mapping[str, float]
    stamp: datetime | None = None
    revision: int | None = None
    findings: Findings = NO_FINDINGS
    purged: Mapping[str, int] = dataclasses.field(default_factory=dict)
    files: tuple[ReadFile, ...] = ()
    message: str | None = None
    notices: tuple[str, ...] = ()
    preview: RunPreview | None = None
    dry_run: bool = False
    run: int | None = None
    written_at: datetime | None = None

    @property
    def rejected(self) -> int:
        """The number of rejected rows."""
        return sum(count.rejected for count in self.counts.values())

    @property
    def is_partial(self) -> bool:
        """Whether the export was loaded, but for rejected rows."""
        return self.outcome in LOADED_OUTCOMES and self.rejected > 0

    @property
    def word(self) -> str:
        """The outcome as people read it: `partial` if rows were rejected."""
        return PARTIAL if self.is_partial else self.outcome

    def to_row(self) -> dict[str, Any]:
        """The columns of sync_runs for this report."""
        return {
            "format": self.format,
            "source": self.source,
            "stamp": self.stamp,
            "outcome": self.word,
            # A later purge adds its records.
            "counts": {
                name: {**dataclasses.asdict(count), PURGED: self.purged.get(name, 0)}
                for name, count in self.counts.items()
            },
            "seconds": dict(self.seconds),
            "message": self._explain(),
            "rejected": self.rejected,
            "notices": list(self.notices),
            "files": [dataclasses.asdict(file) for file in self.files],
            "preview": self.preview,
            "written_at": self.written_at,
        }

    def _explain(self) -> str | None:
        """The message of the run, and of an export that is loaded or stale, how many of its rows were rejected."""
        if not (self.is_partial or (self.outcome == STALE and self.rejected)):
            return self.message
        number = f"{self.rejected:,} {'row was' if self.rejected == 1 else 'rows were'} rejected"
        return "; ".join(filter(None, (self.message, f"{number}: {self.findings.summarize()}")))

    def to_json(self) -> dict[str, Any]:
        """The report as one object for json.dumps."""
        return {
            "feed": self.feed,
            "run": self.run,
            **self.to_row(),
            "preview": self.preview if self.dry_run else self._omit_samples(),
            "stamp": self.stamp and self.stamp.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "written_at": self.written_at and self.written_at.isoformat(timespec="seconds"),
            "revision": self.revision,
            "causes": [cause.to_json() for cause in self.findings.list_causes()[:SHOWN]],
            "rejections": [rejection.to_json() for rejection in self.findings.first[:SHOWN]],
            "dry_run": self.dry_run,
        }

    def _omit_samples(self) -> RunPreview | None:
        """The preview without its samples: the output of a run goes to logs, and samples have values of records."""
        return self.preview and {
            name: [{key: value for key, value in row.items() if key != SAMPLES} for row in part]
            for name, part in self.preview.items()
            if name != SAMPLES
        }

    def to_grid(self) -> Grid:
        """The counts per type, as a table for a terminal."""
        dry = ", dry run: nothing was changed" if self.dry_run else ""
        grid = Grid(title=f"{self.feed}: {self.word}{dry} ({sum(self.seconds.values()):.1f} s)")
        fields = [field.name for field in dataclasses.fields(Counts)]
        grid.add_column("type")
        for field in fields:
            grid.add_column(field, justify="right")
        for name, count in self.counts.items():
            grid.add_row(name, *(f"{getattr(count, field):,}" for field in fields))
        return grid


def count_changes(differences: list[Difference], result: CheckResult, form: Format) -> dict[str, Counts]:
    """The counts per type. Rejected rows of parts count with the type of the records that own the parts."""
    counts = {difference.table: difference.counts for difference in differences}
    for file, rejected in result.rejected.items():
        table = _find_counting_table(form, file)
        if rejected:
            count = counts.get(table, Counts())
            counts[table] = dataclasses.replace(count, rejected=count.rejected + rejected)
    return {TYPES[table.name]: count for table, count in counts.items()}


def _find_counting_table(form: Format, file: CsvFile) -> sa.Table:
    """The roster table with whose records the rejected rows of a file count."""
    if file.table is not None:
        return file.table
    return next(part.owner for part in form.parts if file.name in part.files)


def count_stored(connection: sa.Connection, form: Format, contents: Contents, feed_id: int) -> dict[str, Counts]:
    """The counts per type of an export that the feed has loaded before: all its active records are unchanged."""
    counts = {}
    for table in _list_covered_tables(form, contents):
        own = sa.select(sa.func.count()).where(table.c.feed_id == feed_id, table.c.status == ACTIVE)
        counts[TYPES[table.name]] = Counts(unchanged=connection.execute(own).scalar_one())
    return counts


def list_files(
    form: Format, contents: Contents, rows: Mapping[str, int], rejected: Mapping[CsvFile, int]
) -> tuple[ReadFile, ...]:
    """Returns the files of the format, as the export has them. `rows`: the number of rows by the names of the files
    that the run has read; `rejected`: those of them that it rejected."""
    modes = {file.name: DELTA if file.name in contents.deltas else BULK for file in contents.files}
    return tuple(
        ReadFile(
            file.file_name,
            modes.get(file.name, ABSENT),
            rows.get(file.name),
            rejected.get(file, 0) if file.name in rows else None,
        )
        for file in form.files
    )


def _list_covered_tables(form: Format, contents: Contents) -> list[sa.Table]:
    """The roster tables whose records an export describes."""
    described = {file.name for file in (*contents.files, *contents.silent)} | contents.list_made(form)
    if form.converted:
        described = {converted.file.name for converted in form.converted if described.issuperset(converted.files)}
    covered = {file.table for file in form.roster.files if file.name in described}
    return [table for table in ROSTER_TABLES if table in covered]


def list_notices(
    connection: sa.Connection, form: Format, staged: Staged, retention: Retention, desired: DesiredState
) -> Iterator[str]:
    """The notices about absent files, dropped metadata, users without a role, and districts that another feed has too,
    as sentences for the report. `staged`: the files of the export; `retention`: of its OneRoster files."""
    for file in form.files:
        # Of several files with records of one table, one without their ids leaves the records to the others.
        table, is_alone = file.table, file.identify is keep_key or file.table not in desired.records
        if file.name not in staged and table is not None and is_alone:
            stays = retention.is_retained(table, table)
            if stays is not None and (count := connection.scalar(sa.select(sa.func.count()).where(stays))):
                yield f"{file.file_name} is absent; {count} records of earlier exports stay as they are"
    yield from _list_left(connection, form, staged, retention.feed_name)
    carried = [file for file in retention.staged.values() if file.metadata_keys or METADATA in file.table.c]
    places = {file.file.table for file in carried if file.file.table is not None and METADATA in file.file.table.c}
    for staged_file in staged.values():
        if staged_file.metadata_keys and staged_file.file.table not in places:
            yield f"{staged_file.file.file_name}: its metadata columns have no place in the roster and are not kept"
    roles, users = desired.parts[tables.user_roles], desired.parts[tables.user_roles].owners.subquery()
    nowhere = (
        sa.select(sa.func.count())
        .select_from(users)
        .where(~sa.exists().where(roles.rows.c.user_id == users.c.sourced_id))
    )
    if count := connection.scalar(nowhere):
        yield f"users.csv: {count} users have no role anywhere, so no vendor sees them"

    yield from _list_twin_districts(connection, desired, retention.feed_id)


def _list_left(connection: sa.Connection, form: Format, staged: Staged, feed_name: str) -> Iterator[str]:
    """The notices about records that stay because the export lacks their files, and has others of the same table."""
    for converted in form.converted:
        table, left = converted.file.table, list(converted.left(staged, feed_name))
        absent = [
            file.file_name
            for file in form.files
            if file.table is table and file.name not in staged and file.identify is not keep_key
        ]
        if table is None or not left or not absent:
            continue
        stay = sa.and_(table.c.sourced_id.in_(sa.union_all(*left)), table.c.status == ACTIVE)
        if count := connection.scalar(sa.select(sa.func.count()).where(stay)):
            yield f"{' and '.join(absent)} are absent; {count} records of earlier exports stay as they are"


def _list_twin_districts(connection: sa.Connection, desired: DesiredState, feed_id: int) -> Iterator[str]:
    """The notices about districts that another feed has too, under another id: a grant of one opens nothing of the
    other."""
    if tables.orgs not in desired.records:
        return
    own, other = desired.records[tables.orgs].subquery(), tables.orgs
    same = (own.c.name == other.c.name, own.c.identifier.is_not_distinct_from(other.c.identifier))
    theirs = (other.c.feed_id != feed_id, other.c.status == ACTIVE, other.c.type == DISTRICT, own.c.type == DISTRICT)
    rows = sa.select(own.c.sourced_id, other.c.sourced_id.label("twin"), tables.feeds.c.name.label("feed"))
    found = rows.where(*same, *theirs, own.c.sourced_id != other.c.sourced_id, tables.feeds.c.id == other.c.feed_id)
    for row in connection.execute(found.order_by(own.c.sourced_id, tables.feeds.c.name)):
        yield (
            f"the feed {row.feed} has a district with the same name and identifier, {row.twin}, beside "
            f"{row.sourced_id} of this export: grant vendors the one that they shall read, or both"
        )


def list_left_out(count: int) -> Iterator[str]:
    """The notice about people whom the run leaves out, if there are some."""
    if count:
        yield f"people who were erased or hidden, and whom the run leaves out: {count} (`roster person list`)"
