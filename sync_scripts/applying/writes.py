"""Writes to the tables of the roster: the differences of a run, deletions, missing indexes and planner statistics.

All writes of a run have the same stamp. A record that the export no longer has keeps its data and its parts and is
marked `tobedeleted`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.schema import CreateIndex

from roster_service.db.tables import NEEDY, PART_TABLES, ROSTER_TABLES, CText, CTexts, departures, visibility_labels
from roster_service.roster.references import OWNERS, list_owners
from sync_scripts.applying.changes import ADDED, CHANGE, KEY, Difference
from sync_scripts.applying.desired_state import DesiredState
from sync_scripts.applying.labels import RunLabels
from sync_scripts.formats.model import Format
from sync_scripts.staging.retained import ACTIVE, TO_BE_DELETED, Retention, is_live

PURGE_ORDER = ROSTER_TABLES[::-1]


def delete_from(connection: sa.Connection, table: sa.Table, condition: sa.ColumnElement[bool]) -> int:
    """Deletes the records of a table for which the condition holds, with their parts and departures. Returns their
    number."""
    ids = sa.select(table.c.sourced_id).where(condition)
    connection.execute(sa.delete(departures).where(departures.c.type == table.name, departures.c.sourced_id.in_(ids)))
    for owner in list_owners(table):
        connection.execute(sa.delete(owner.table).where(owner.in_(ids)))
    return connection.execute(sa.delete(table).where(condition)).rowcount


def delete_records(connection: sa.Connection, feed_id: int) -> None:
    """Deletes all records of a feed with their parts, departures and labels. No record of another feed refers to
    them."""
    for table in PURGE_ORDER:
        delete_from(connection, table, table.c.feed_id == feed_id)
    for table in (departures, visibility_labels):
        connection.execute(sa.delete(table).where(table.c.feed_id == feed_id))


# maintenance_work_mem for the sort of one index, until the transaction ends.
SORT_MEMORY = "256MB"
TABLES = (*ROSTER_TABLES, *PART_TABLES)
_NAMES = [str(name) for table in TABLES for name in (table.primary_key.name, *(index.name for index in table.indexes))]


def list_missing_indexes(connection: sa.Connection) -> set[str]:
    """The names of the indexes and primary keys that the tables of the roster lack. Only the first load runs without
    them, and it must be the only one."""
    name = sa.func.unnest(sa.literal(_NAMES, CTexts)).column_valued("name")
    return {*connection.scalars(sa.select(name).where(sa.func.to_regclass(name).is_(None)))}


def make_missing_indexes(connection: sa.Connection, tables: Iterable[sa.Table]) -> None:
    """Makes the declared indexes that the tables lack. Readers can read the tables meanwhile; no other run may write to
    them, because both would wait for each other."""
    missing = list_missing_indexes(connection)
    if not missing:
        return
    connection.execute(sa.select(sa.func.set_config(sa.literal("maintenance_work_mem"), sa.literal(SORT_MEMORY), True)))
    for table in tables:
        if table.primary_key.name in missing:
            _make_key(connection, table)
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            if index.name in missing:
                connection.execute(CreateIndex(index))


def _make_key(connection: sa.Connection, table: sa.Table) -> None:
    """Makes the primary key as a unique index: a constraint would lock readers out until the transaction ends."""
    quote = connection.dialect.identifier_preparer
    columns = ", ".join(map(quote.format_column, table.primary_key))
    connection.exec_driver_sql(
        f"CREATE UNIQUE INDEX {quote.quote(str(table.primary_key.name))} ON {quote.format_table(table)} ({columns})"
    )


# A run analyzes a table itself, without waiting for autovacuum, if it wrote at least this part of all its records.
ANALYZED_PERCENT = 5
# The records of each table, of all feeds, as the last ANALYZE or autovacuum has counted them; -1: none of them has.
_SIZES = sa.text(
    "SELECT relname, CAST(reltuples AS bigint) FROM pg_class "
    "WHERE relnamespace = CAST(current_schema() AS regnamespace) AND relkind = 'r'"
)


def list_outdated(connection: sa.Connection, differences: Iterable[Difference], form: Format) -> list[sa.Table]:
    """The tables of which the differences write so much that their statistics are out of date, with their tables of
    parts."""
    sizes: dict[str, int] = {row.relname: row.reltuples for row in connection.execute(_SIZES)}
    written = [
        difference.table
        for difference in differences
        if difference.counts.any and _is_outdated(difference, max(sizes[difference.table.name], 1))
    ]
    return [*written, *(part.table for part in form.parts if part.owner in written)]


def _is_outdated(difference: Difference, size: int) -> bool:
    return (difference.counts.written + difference.counts.tombstoned) * 100 >= ANALYZED_PERCENT * size


def analyze(connection: sa.Connection, tables: Iterable[sa.Table]) -> None:
    """Makes new statistics of these tables."""
    for table in tables:
        # SKIP_LOCKED: a load of another feed that has analyzed the table keeps its lock until it ends.
        connection.exec_driver_sql(
            f"ANALYZE (SKIP_LOCKED) {connection.dialect.identifier_preparer.format_table(table)}"
        )


def write_differences(
    connection: sa.Connection, differences: Iterable[Difference], desired: DesiredState, feed_id: int, stamp: datetime
) -> None:
    """Writes the differences into the roster, all with the dateLastModified `stamp`, and the visibility labels that
    follow from them."""
    labels = RunLabels(connection, feed_id, stamp)
    missing = list_missing_indexes(connection)
    for difference in differences:
        labels.stamp_left_parts(difference)
        if difference.counts.tombstoned:
            _mark_deleted(connection, difference, stamp)
        if difference.counts.written:
            # The labels of users follow from their parts.
            _write_parts(connection, difference, desired, missing)
            _write_records(connection, difference, feed_id, stamp, labels, missing)
        labels.renew(difference)
    labels.renew_others()


def _mark_deleted(connection: sa.Connection, difference: Difference, stamp: datetime) -> None:
    table = difference.table
    marked: dict[str, Any] = {"status": TO_BE_DELETED, "date_last_modified": stamp}
    if difference.orphans is not None:
        marked["ended_by_need"] = table.c.sourced_id.in_(sa.select(difference.orphans.c.sourced_id))
    gone = table.c.sourced_id.in_(sa.select(difference.gone.c.sourced_id))
    connection.execute(sa.update(table).where(gone).values(marked))


def _write_records(
    connection: sa.Connection,
    difference: Difference,
    feed_id: int,
    stamp: datetime,
    labels: RunLabels,
    missing: Collection[str],
) -> None:
    table, rows = difference.table, difference.rows
    data = {column.name: column for column in rows.c if column.name not in (KEY, CHANGE)}
    own: dict[str, sa.ColumnElement[Any]] = {
        "status": sa.literal(ACTIVE, CText),
        "date_last_modified": sa.literal(stamp, table.c.date_last_modified.type),
    }
    if difference.counts.rewritten:
        again = {"ended_by_need": sa.null()} if table in NEEDY else {}
        connection.execute(
            sa.update(table)
            .where(table.c.sourced_id == rows.c.sourced_id, rows.c.change != ADDED)
            .values({**data, **own, **again})
        )
    if difference.counts.added:
        values = {KEY: rows.c.sourced_id, "feed_id": sa.literal(feed_id), **own, **data}
        source: sa.FromClause = rows
        first = labels.find_first(difference)
        if first is not None:
            values |= {column.name: column for column in first.c if column.name != KEY}
            source = rows.outerjoin(first, first.c.sourced_id == rows.c.sourced_id)
        chosen = sa.select(*values.values()).select_from(source).where(rows.c.change == ADDED)
        added = _order(chosen, table, [rows.c.sourced_id], missing)
        connection.execute(table.insert().from_select(list(values), added))


def forget_needs(connection: sa.Connection, retention: Retention) -> None:
    """Lets the tombstones that ended by a need stay what they are if the export ends them itself now: by their row in a
    delta, or by their absence from a bulk file."""
    for table in NEEDY:
        dead = [~is_live(table.c.sourced_id, file) for file in retention.list_files(table)]
        if dead:
            left = retention.is_left(table, table)
            _forget_needs(connection, table, retention.feed_id, *dead, *([] if left is None else [~left]))


def forget_all_needs(connection: sa.Connection, feed_id: int) -> None:
    """Lets every tombstone of a feed stay what it is: the feed is removed."""
    for table in NEEDY:
        _forget_needs(connection, table, feed_id)


def _forget_needs(
    connection: sa.Connection, table: sa.Table, feed_id: int, *conditions: sa.ColumnElement[bool]
) -> None:
    ended = sa.update(table).where(table.c.feed_id == feed_id, table.c.ended_by_need, *conditions)
    connection.execute(ended.values(ended_by_need=None))


def _order(
    rows: sa.Select[Any], table: sa.Table, key: Iterable[sa.ColumnElement[Any]], missing: Collection[str]
) -> sa.Select[Any]:
    """The rows in the order of the table's key, so that PostgreSQL fills the pages of the index one after the other.
    Unordered if the table has no key yet, because the run then makes the index after the rows. `missing`: the names of
    the indexes that there are not."""
    return rows if table.primary_key.name in missing else rows.order_by(*key)


def _write_parts(
    connection: sa.Connection, difference: Difference, desired: DesiredState, missing: Collection[str]
) -> None:
    """Replaces the parts of every record that is written. `missing`: as for `_order`."""
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
        key = [rows.c[column.name] for column in table.primary_key]
        written = _order(sa.select(*rows.c), table, key, missing)
        if not difference.all_new:
            written = written.where(rows.c[owner.name].in_(sa.select(changed.c.sourced_id)))
        connection.execute(table.insert().from_select([column.name for column in rows.c], written))
