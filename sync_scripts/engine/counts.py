"""The counts of a report, per type of record and per file."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import sqlalchemy as sa

from roster_service.db.tables import ROSTER_TABLES
from roster_service.feeds.run_history import TYPES, ReadFile
from sync_scripts.applying.changes import Counts, Difference
from sync_scripts.checking.checks import CheckResult
from sync_scripts.formats.model import Format
from sync_scripts.reading.manifest import ABSENT, BULK, DELTA, Contents
from sync_scripts.staging.retained import ACTIVE


def count_changes(differences: list[Difference], result: CheckResult, form: Format) -> dict[str, Counts]:
    """The counts per type. Rejected rows of parts count with the type of the records that own the parts."""
    counts = {difference.table: difference.counts for difference in differences}
    for name, rejected in result.rejected.items():
        table = _find_counting_table(form, name)
        if rejected:
            count = counts.get(table, Counts())
            counts[table] = dataclasses.replace(count, rejected=count.rejected + rejected)
    return {TYPES[table.name]: count for table, count in counts.items()}


def _find_counting_table(form: Format, name: str) -> sa.Table:
    """The roster table with whose records the rejected rows of a file count."""
    file = form.find_file(name)
    if file.table is not None:
        return file.table
    return next(part.owner for part in form.parts if name in part.files) if file.subject is None else file.subject.table


def count_stored(connection: sa.Connection, form: Format, contents: Contents, feed_id: int) -> dict[str, Counts]:
    """The counts per type of an export that the feed has loaded before: all its active records are unchanged."""
    counts = {}
    for table in _list_covered_tables(form, contents):
        own = sa.select(sa.func.count()).where(table.c.feed_id == feed_id, table.c.status == ACTIVE)
        counts[TYPES[table.name]] = Counts(unchanged=connection.scalar(own) or 0)
    return counts


def list_files(
    form: Format, contents: Contents, rows: Mapping[str, int], rejected: Mapping[str, int]
) -> tuple[ReadFile, ...]:
    """Returns the files of the format, as the export has them. `rows`: the number of rows by the names of the files
    that the run has read; `rejected`: those of them that it rejected."""
    modes = {file.name: DELTA if file.name in contents.deltas else BULK for file in contents.files}
    return tuple(
        ReadFile(
            file.file_name,
            modes.get(file.name, ABSENT),
            rows.get(file.name),
            rejected.get(file.name, 0) if file.name in rows else None,
        )
        for file in form.files
    )


def _list_covered_tables(form: Format, contents: Contents) -> list[sa.Table]:
    """The roster tables whose records an export describes."""
    names = {file.name for file in (*contents.files, *contents.silent)}
    converted = {converted.file.name for converted in form.converted if names.issuperset(converted.files)}
    covered = {file.table for file in form.all_files if file.name in names | converted}
    return [table for table in ROSTER_TABLES if table in covered]
