"""From the roster that is to the roster that shall be: compare, then write only what differs.

Every write of a run carries the run's one stamp. A record that is gone keeps its data and its parts and is marked
`tobedeleted`; one that returns is active again. A change of a record's parts is a change of the record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Table,
    and_,
    case,
    delete,
    exists,
    func,
    literal,
    or_,
    select,
    union,
    update,
)

from roster_service.db.tables import ROSTER_TABLES, CText
from sync_scripts.formats import Part
from sync_scripts.incoming import Incoming
from sync_scripts.temporary import analyze_temporary, create_temporary, like

ACTIVE, TO_BE_DELETED = "active", "tobedeleted"
ADDED, CHANGED, REVIVED = "added", "changed", "revived"
KEY, CHANGE = "sourced_id", "change"


@dataclass(frozen=True)
class Counts:
    """What a run did to the records of one type."""

    added: int = 0
    changed: int = 0
    revived: int = 0
    tombstoned: int = 0
    unchanged: int = 0

    @property
    def any(self) -> bool:
        """Whether anything was written."""
        return bool(self.added or self.changed or self.revived or self.tombstoned)


@dataclass(frozen=True)
class Difference:
    """How the incoming records of a table differ from the stored ones: a temporary table of those to write, whole,
    with what is to happen to them in `change`."""

    table: Table
    rows: Table
    incoming: int
    counts: Mapping[str, int]


def compare(connection: Connection, incoming: Incoming, feed_id: int) -> list[Difference]:
    """Finds what is to be written, in the order of the roster's tables. Writes nothing into the roster."""
    return [
        _compare_table(connection, table, incoming, feed_id) for table in ROSTER_TABLES if table in incoming.records
    ]


def _compare_table(connection: Connection, table: Table, incoming: Incoming, feed_id: int) -> Difference:
    new = incoming.records[table].subquery("new")
    both = new.outerjoin(table, table.c.sourced_id == new.c.sourced_id)
    differs = [column.is_distinct_from(table.c[column.name]) for column in new.c if column.name != KEY]
    touched = _find_touched(connection, table, incoming, feed_id)
    if touched is not None:
        both = both.outerjoin(touched, touched.c.sourced_id == new.c.sourced_id)
        differs.append(touched.c.sourced_id.is_not(None))
    change = case((table.c.sourced_id.is_(None), ADDED), (table.c.status != ACTIVE, REVIVED), else_=CHANGED)
    changed = select(*new.c, change).select_from(both)
    changed = changed.where(or_(table.c.sourced_id.is_(None), table.c.status != ACTIVE, *differs))
    rows = create_temporary(connection, f"changed_{table.name}", [*like(new.c), Column(CHANGE, CText)])
    connection.execute(rows.insert().from_select(list(rows.c.keys()), changed))
    analyze_temporary(connection, rows, KEY, CHANGE)
    counts = connection.execute(select(rows.c.change, func.count()).group_by(rows.c.change))
    total = connection.scalar(select(func.count()).select_from(new)) or 0
    return Difference(table, rows, total, {row[0]: row[1] for row in counts})


def _find_touched(connection: Connection, table: Table, incoming: Incoming, feed_id: int) -> Table | None:
    """A temporary table of the ids of stored records whose parts differ; None where there is nothing to differ."""
    parts = [(part, rows) for part, rows in incoming.parts.values() if part.owner is table]
    stored = select(table.c.sourced_id).where(table.c.feed_id == feed_id)
    if not parts or connection.scalar(stored.limit(1)) is None:
        return None
    touched = create_temporary(connection, f"touched_{table.name}", [Column("sourced_id", CText)])
    changed = union(*(_select_touched(part, rows, incoming) for part, rows in parts))
    connection.execute(touched.insert().from_select(["sourced_id"], changed))
    analyze_temporary(connection, touched)
    return touched


def _select_touched(part: Part, rows: Table, incoming: Incoming) -> Any:
    """The owners with a part that is only stored, only incoming, or not the same in both."""
    owner = _owner_column(part.table).name
    mine = incoming.records[part.owner].subquery()
    old = select(part.table).where(part.table.c[owner].in_(select(mine.c.sourced_id))).subquery("old")
    keys = [column.name for column in part.table.primary_key]
    data = [column.name for column in part.table.columns if column.name not in keys]
    same_key = and_(*(rows.c[key] == old.c[key] for key in keys))
    differs = or_(
        rows.c[owner].is_(None),
        old.c[owner].is_(None),
        *(rows.c[name].is_distinct_from(old.c[name]) for name in data),
    )
    both = rows.join(old, same_key, full=True)
    return select(func.coalesce(rows.c[owner], old.c[owner])).select_from(both).where(differs).distinct()


def write(
    connection: Connection, differences: list[Difference], incoming: Incoming, feed_id: int, stamp: datetime
) -> dict[Table, Counts]:
    """Writes the differences into the roster, all with the same stamp; returns what was done per table."""
    done = {}
    for difference in differences:
        gone = _bury(connection, difference.table, incoming, feed_id, stamp)
        if difference.counts:
            _write_records(connection, difference, feed_id, stamp)
            _write_parts(connection, difference, incoming)
        found = difference.counts
        unchanged = difference.incoming - sum(found.values())
        done[difference.table] = Counts(
            found.get(ADDED, 0), found.get(CHANGED, 0), found.get(REVIVED, 0), gone, unchanged
        )
    return done


def _bury(connection: Connection, table: Table, incoming: Incoming, feed_id: int, stamp: datetime) -> int:
    """Marks the feed's records that the export no longer has; returns how many there are."""
    new = incoming.records[table].subquery("new")
    gone = and_(
        table.c.feed_id == feed_id,
        table.c.status == ACTIVE,
        ~exists().where(new.c.sourced_id == table.c.sourced_id),
    )
    marked = {"status": TO_BE_DELETED, "date_last_modified": stamp}
    return connection.execute(update(table).where(gone).values(marked)).rowcount


def _write_records(connection: Connection, difference: Difference, feed_id: int, stamp: datetime) -> None:
    table, rows = difference.table, difference.rows
    data = {column.name: column for column in rows.c if column.name not in (KEY, CHANGE)}
    own: dict[str, ColumnElement[Any]] = {
        "status": literal(ACTIVE, CText),
        "date_last_modified": literal(stamp, table.c.date_last_modified.type),
    }
    if set(difference.counts) - {ADDED}:
        connection.execute(
            update(table).where(table.c.sourced_id == rows.c.sourced_id, rows.c.change != ADDED).values({**data, **own})
        )
    if ADDED in difference.counts:
        values = {KEY: rows.c.sourced_id, "feed_id": literal(feed_id), **own, **data}
        # In the order of the primary key: its pages are filled one after the other, and later read so.
        added = select(*values.values()).where(rows.c.change == ADDED).order_by(rows.c.sourced_id)
        connection.execute(table.insert().from_select(list(values), added))


def _write_parts(connection: Connection, difference: Difference, incoming: Incoming) -> None:
    """Replaces all parts of every record that is written."""
    changed = difference.rows
    for part, rows in incoming.parts.values():
        if part.owner is not difference.table:
            continue
        owner = _owner_column(part.table)
        if set(difference.counts) - {ADDED}:
            stored = select(changed.c.sourced_id).where(changed.c.change != ADDED)
            connection.execute(delete(part.table).where(owner.in_(stored)))
        written = select(*rows.c).where(rows.c[owner.name].in_(select(changed.c.sourced_id)))
        connection.execute(part.table.insert().from_select([column.name for column in rows.c], written))


def _owner_column(part_table: Table) -> Column[Any]:
    return next(iter(part_table.columns))
