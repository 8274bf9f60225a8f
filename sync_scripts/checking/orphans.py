"""Orphans: stored records that a run would retain although a record that they need is no longer active after it.

A user leaves, and the export still has the user's enrollments: each of these rows is rejected, and its record would
stay active for good. The same holds for the records of a file that is absent. A record needs the records of its
required references. The sync does not retain an orphan, so it marks it as deleted.

An export with a delta makes no orphans: a later delta may bring a user back, and it would not name the enrollments.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import sqlalchemy as sa

from roster_service.db.tables import ROSTER_TABLES, CText
from sync_scripts.formats.model import CsvFile, Format, StagedFile
from sync_scripts.staging.retained import Retention, is_active
from sync_scripts.staging.temporary import analyze_temporary, create_temporary


def leave_out_orphans(connection: sa.Connection, form: Format, retention: Retention) -> Retention:
    """The retention without the orphans among its records. Call it again after rows are rejected."""
    if retention.deltas:
        return retention
    orphans = dict(retention.orphans)
    for table in ROSTER_TABLES:
        # An orphan may need an orphan: the tables come in the order of their references.
        retention = replace(retention, orphans=orphans)
        needs = list(_list_needs(form, table, retention))
        stored = table.alias()
        stays = retention.is_active_after(table, stored)
        if not needs or stays is None:
            continue
        # A query for each column, because the planner finds the few records of lost ids by an index only if the
        # condition stands alone.
        found = sa.union(
            *(
                sa.select(stored.c.sourced_id).where(stays, stored.c[column.name].in_(_select_lost(file, retention)))
                for column, file in needs
            )
        )
        if table not in orphans:
            # The check costs a few look-ups, and hardly any run has orphans.
            if not connection.scalar(sa.select(sa.exists(found))):
                continue
            orphans[table] = create_temporary(connection, f"orphans_{table.name}", [sa.Column("sourced_id", CText)])
        connection.execute(orphans[table].insert().from_select(["sourced_id"], found))
        analyze_temporary(connection, orphans[table])
    return replace(retention, orphans=orphans)


def _list_needs(form: Format, table: sa.Table, retention: Retention) -> Iterator[tuple[sa.Column[Any], CsvFile]]:
    """(column of a required reference of the table, the file of its target), for targets that the run may lose."""
    for file in form.all_files:
        if file.table is table:
            for cell in file.cells:
                if cell.is_needed and cell.refers is not None and cell.column is not None:
                    target = form.find_file(cell.refers.file)
                    if target.name in retention.staged or cast(sa.Table, target.table) in retention.orphans:
                        yield cell.column, target


def _select_lost(file: CsvFile, retention: Retention) -> sa.Select[Any]:
    """The ids of the records of a file that are active now and will not be after the run."""
    table = cast(sa.Table, file.table)
    stored = table.alias()
    gone = [] if table not in retention.orphans else [sa.select(retention.orphans[table].c.sourced_id)]
    if file.name in retention.staged:
        staged = retention.staged[file.name].alias()
        conditions = [is_active(stored, retention.feed_id), ~_is_live(stored.c.sourced_id, staged)]
        is_retained = retention.is_active_after(table, stored)
        if table in retention.absent:
            conditions.append(stored.c.sourced_id.in_(sa.select(retention.absent[table].c.sourced_id)))
        if is_retained is not None:
            conditions.append(~is_retained)
        gone.append(sa.select(stored.c.sourced_id).where(*conditions))
    ids = sa.union(*gone).subquery()
    return sa.select(ids.c.sourced_id)


def _is_live(identifier: sa.ColumnElement[str], staged: StagedFile) -> sa.ColumnElement[bool]:
    rows = staged.alias()
    return sa.exists().where(sa.and_(rows["sourcedId"] == identifier, rows.live))
