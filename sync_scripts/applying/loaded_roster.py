"""The roster that a run would leave behind, for the checks of data quality, while the run has written nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from roster_service.db import tables
from roster_service.db.tables import PART_TABLES, ROSTER_TABLES
from roster_service.feeds.checked_roster import ACTIVE
from roster_service.feeds.run_history import TYPES
from roster_service.roster.references import OWNERS, RECORDS
from roster_service.roster.visibility import has_row
from sync_scripts.applying.changes import Difference
from sync_scripts.applying.desired_state import OWN_COLUMNS, DesiredState
from sync_scripts.reading.rejections import Findings
from sync_scripts.staging.temporary import (
    analyze_temporary,
    create_ids,
    create_temporary,
    insert_rows,
    store_ids,
)

# What no check asks for, and what is long.
_LEFT_OUT = {*OWN_COLUMNS, "metadata", "fingerprint"}


@dataclass(frozen=True)
class LoadedRoster:
    """The roster after a run, as `CheckedRoster`. `records`, `pieces`: the live records of the feed and their parts, in
    temporary tables; `classes`: a temporary table of the ids of the classes that rejected rows name."""

    feed_id: int
    records: Mapping[sa.Table, sa.Table]
    pieces: Mapping[sa.Table, sa.Table]
    classes: sa.Table

    def own(self, table: sa.Table) -> sa.FromClause:
        """As in `CheckedRoster`."""
        made = self.records[table]
        return sa.select(made, sa.literal(self.feed_id).label("feed_id")).subquery()

    def live(self, table: sa.Table) -> sa.FromClause:
        """As in `CheckedRoster`."""
        made = self.records[table]
        others = sa.select(*(table.c[column.name] for column in made.c))
        others = others.where(table.c.feed_id != self.feed_id, table.c.status == ACTIVE)
        return sa.union_all(sa.select(made), others).subquery()

    def parts(self, table: sa.Table) -> sa.FromClause:
        """As in `CheckedRoster`."""
        return self.pieces[table].alias()

    def rejected_classes(self) -> sa.Select[Any]:
        """As in `CheckedRoster`."""
        return sa.select(self.classes.c.sourced_id)


def make_loaded_roster(
    connection: sa.Connection,
    differences: Sequence[Difference],
    desired: DesiredState,
    findings: Findings,
    feed_id: int,
) -> LoadedRoster:
    """Makes the roster that a run would leave, of what it would change and what is stored. `findings`: of the run."""
    by_table = {difference.table: difference for difference in differences}
    records = {table: _store_records(connection, table, by_table.get(table), feed_id) for table in ROSTER_TABLES}
    pieces = {table: _store_parts(connection, table, desired, records[RECORDS[table]]) for table in PART_TABLES}
    named = (record for rejection in findings.first for record in rejection.records if not record.own)
    classes = create_ids(connection, "checked_rejected_classes")
    _insert_ids(
        connection, classes, {record.sourcedId for record in named if record.type == TYPES[tables.classes.name]}
    )
    return LoadedRoster(feed_id, records, pieces, classes)


def _insert_ids(connection: sa.Connection, table: sa.Table, ids: Iterable[str]) -> None:
    if rows := [{"sourced_id": one} for one in sorted(ids)]:
        connection.execute(sa.insert(table), rows)


def _store_records(connection: sa.Connection, table: sa.Table, difference: Difference | None, feed_id: int) -> sa.Table:
    """A temporary table of the records of a table that the feed has after the run."""
    columns = [column for column in table.c if column.name not in _LEFT_OUT]
    made = create_temporary(connection, f"checked_{table.name}", columns)
    if difference is None or not difference.all_new:
        stored = sa.select(*columns).where(table.c.feed_id == feed_id, table.c.status == ACTIVE)
        if difference is not None:
            stored = stored.where(
                *(_is_not_in(each, table.c.sourced_id) for each in (difference.gone, difference.rows))
            )
        insert_rows(connection, made, stored)
    if difference is not None:
        insert_rows(connection, made, sa.select(*(difference.rows.c[column.name] for column in columns)))
    analyze_temporary(connection, made)
    return made


def _store_parts(connection: sa.Connection, table: sa.Table, desired: DesiredState, owners: sa.Table) -> sa.Table:
    """A temporary table of the parts of the feed's records after the run. `owners`: the records."""
    made = create_temporary(connection, f"checked_{table.name}", table.c)
    part, owner = desired.parts.get(table), OWNERS[table]
    stored = sa.select(table).where(owner.in_(sa.select(owners.c.sourced_id)))
    if part is not None:
        owned = part.owners.subquery()
        renewed = store_ids(connection, f"checked_owners_{table.name}", sa.select(owned.c.sourced_id).distinct())
        stored = stored.where(_is_not_in(renewed, owner))
        insert_rows(connection, made, sa.select(*(part.rows.c[column.name] for column in table.c)))
    insert_rows(connection, made, stored)
    analyze_temporary(connection, made)
    return made


def _is_not_in(rows: sa.FromClause, sourced_id: sa.Column[str]) -> sa.ColumnElement[bool]:
    return ~has_row(rows, rows.c.sourced_id == sourced_id)
