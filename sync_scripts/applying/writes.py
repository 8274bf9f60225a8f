"""Writes the differences between the desired and the stored roster.

All writes of a run have the same stamp. A record that the export no longer has keeps its data and its parts and is
marked `tobedeleted`.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from roster_service.db.tables import CText
from roster_service.roster.references import OWNERS
from sync_scripts.applying.changes import ADDED, CHANGE, KEY, Difference
from sync_scripts.applying.desired_state import DesiredState
from sync_scripts.applying.indexes import has_key
from sync_scripts.applying.labels import RunLabels
from sync_scripts.staging.retained import ACTIVE, TO_BE_DELETED


def write_differences(
    connection: sa.Connection, differences: Iterable[Difference], desired: DesiredState, feed_id: int, stamp: datetime
) -> None:
    """Writes the differences into the roster, all with the dateLastModified `stamp`, and the visibility labels that
    follow from them."""
    labels = RunLabels(connection, feed_id, stamp)
    for difference in differences:
        labels.stamp_left_parts(difference)
        if difference.counts.tombstoned:
            _mark_deleted(connection, difference, stamp)
        if difference.counts.written:
            # The labels of users follow from their parts.
            _write_parts(connection, difference, desired)
            _write_records(connection, difference, feed_id, stamp, labels)
        labels.renew(difference)
    labels.renew_others()


def _mark_deleted(connection: sa.Connection, difference: Difference, stamp: datetime) -> None:
    table = difference.table
    marked = {"status": TO_BE_DELETED, "date_last_modified": stamp}
    gone = table.c.sourced_id.in_(sa.select(difference.gone.c.sourced_id))
    connection.execute(sa.update(table).where(gone).values(marked))


def _write_records(
    connection: sa.Connection, difference: Difference, feed_id: int, stamp: datetime, labels: RunLabels
) -> None:
    table, rows = difference.table, difference.rows
    data = {column.name: column for column in rows.c if column.name not in (KEY, CHANGE)}
    own: dict[str, sa.ColumnElement[Any]] = {
        "status": sa.literal(ACTIVE, CText),
        "date_last_modified": sa.literal(stamp, table.c.date_last_modified.type),
    }
    if difference.counts.rewritten:
        connection.execute(
            sa.update(table)
            .where(table.c.sourced_id == rows.c.sourced_id, rows.c.change != ADDED)
            .values({**data, **own})
        )
    if difference.counts.added:
        values = {KEY: rows.c.sourced_id, "feed_id": sa.literal(feed_id), **own, **data}
        source: sa.FromClause = rows
        first = labels.find_first(difference)
        if first is not None:
            values |= {column.name: column for column in first.c if column.name != KEY}
            source = rows.outerjoin(first, first.c.sourced_id == rows.c.sourced_id)
        chosen = sa.select(*values.values()).select_from(source).where(rows.c.change == ADDED)
        added = _order(connection, table, chosen, [rows.c.sourced_id])
        connection.execute(table.insert().from_select(list(values), added))


def _order(
    connection: sa.Connection, table: sa.Table, rows: sa.Select[Any], key: list[sa.ColumnElement[Any]]
) -> sa.Select[Any]:
    """The rows in the order of the table's key, so that PostgreSQL fills the pages of the index one after the other.
    Unordered if the table has no key yet, because the run then makes the index after the rows."""
    return rows.order_by(*key) if has_key(connection, table) else rows


def _write_parts(connection: sa.Connection, difference: Difference, desired: DesiredState) -> None:
    """Replaces the parts of every record that is written."""
    changed = difference.rows
    for part in desired.parts.values():
        if part.part.owner is not difference.table:
            continue
        table, rows = part.part.table, part.rows
        owner = OWNERS[table]
        if difference.counts.rewritten:
            stored = sa.select(changed.c.sourced_id).where(changed.c.change != ADDED)
            # The run did not look at the parts of other owners, so these parts stay.
            looked_at = sa.select(part.owners.subquery().c.sourced_id)
            connection.execute(sa.delete(table).where(owner.in_(stored), owner.in_(looked_at)))
        written = _order(connection, table, sa.select(*rows.c), [rows.c[column.name] for column in table.primary_key])
        if not difference.all_new:
            written = written.where(rows.c[owner.name].in_(sa.select(changed.c.sourced_id)))
        connection.execute(table.insert().from_select([column.name for column in rows.c], written))
