"""The changes of a run: the records that it added, changed, revived, and marked as deleted.

sync_changes has the changes of stored records, each with the stamp that the record had before. A record that a run
added has no change of that run, but has its stamp: today, or before a later change. Of a held run it has the changes
that the run would make.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from roster_service.db.tables import ROSTER_TABLES, CText, sync_changes, sync_runs
from roster_service.errors import CommandError
from roster_service.feeds.run_history import TYPES

ADDED = "added"
# The kinds of change, in the order of lists.
CHANGES = (ADDED, "changed", "revived", "tombstoned")
# Rows that one round trip brings.
FETCHED = 10_000
CSV_COLUMNS = ("type", "sourcedId", "change", "field", "before", "after")
# Stands for the field of a record of which only the children changed.
CHILDREN = "(its children)"


@dataclass(frozen=True)
class ChangedRecord:
    """A record that a run changed. `change`: `added`, `changed`, `revived` or `tombstoned`; `fields`: for each field
    that differs, its name in exports, with the values before and after; none if only its children changed."""

    type: str
    sourcedId: str  # noqa: N815  (the name in exports)
    change: str
    fields: dict[str, dict[str, Any]]

    @classmethod
    def of_row(cls, kind: str, row: sa.Row[Any]) -> ChangedRecord:
        """The change in a row of (sourced_id, change, fields)."""
        return cls(kind, row.sourced_id, row.change, _name_values(row.fields))

    @staticmethod
    def no_fields() -> sa.ColumnElement[Any]:
        """The column `fields` of a record that has none."""
        return sa.cast(sa.null(), JSONB).label("fields")

    def list_lines(self) -> Iterator[tuple[str, ...]]:
        """The cells of `CSV_COLUMNS`, a line for each changed field."""
        start = (self.type, self.sourcedId, self.change)
        if not self.fields:
            yield (*start, CHILDREN if self.change == "changed" else "", "", "")
        for name, values in self.fields.items():
            yield (*start, name, _to_cell(values["before"]), _to_cell(values["after"]))


def _name_values(fields: dict[str, list[Any]] | None) -> dict[str, dict[str, Any]]:
    return {name: {"before": before, "after": after} for name, (before, after) in (fields or {}).items()}


def _to_cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True)
class ChangeHistory:
    """The changes of one run; a held one has no stamp. `missing`: later runs of the feed that stored no changes, so the
    records that this run added and they changed are not known as added."""

    run: sa.Row[Any]
    missing: Sequence[int]

    @property
    def kinds(self) -> Sequence[str]:
        """The kinds of change that it has. The records that a held run would add are nowhere but in its export."""
        return [change for change in CHANGES if change != ADDED or self.run.stamp is not None]

    def count(self, connection: sa.Connection, kind: str | None = None) -> dict[str, dict[str, int]]:
        """The number of records by type and change, of the types and changes that occur."""
        counts: dict[str, dict[str, int]] = {}
        for table in _choose_tables(kind):
            found = {}
            for change in self.kinds:
                rows = self._select(table, change, None, None).subquery()
                found[change] = connection.execute(sa.select(sa.func.count()).select_from(rows)).scalar_one()
            occurring = {change: number for change, number in found.items() if number}
            counts |= {TYPES[table.name]: occurring} if occurring else {}
        return counts

    def read(
        self, connection: sa.Connection, kind: str | None = None, count: int | None = None
    ) -> Iterator[ChangedRecord]:
        """The changes, or the first `count` of each type, by type, change and sourcedId. `kind`: only this type."""
        for table in _choose_tables(kind):
            left = count
            for change in self.kinds:
                rows = self._select(table, change, None, left).execution_options(yield_per=FETCHED)
                for row in connection.execute(rows):
                    yield ChangedRecord.of_row(TYPES[table.name], row)
                    left = None if left is None else left - 1

    def read_page(
        self, connection: sa.Connection, kind: str, change: str, after: str | None, count: int
    ) -> Sequence[ChangedRecord]:
        """The first `count` changes of one type and kind of change whose sourcedId comes after `after`, by
        sourcedId."""
        [table] = _choose_tables(kind)
        return [
            ChangedRecord.of_row(kind, row) for row in connection.execute(self._select(table, change, after, count))
        ]

    def _select(self, table: sa.Table, change: str, after: str | None, count: int | None) -> sa.Select[Any]:
        """(sourced_id, change, fields) of the changes of one kind, by sourced_id."""
        rows = self._select_added(table, after, count) if change == ADDED else self._select_stored(table, change)
        found = rows.subquery()
        ordered = sa.select(found).order_by(found.c.sourced_id).limit(count)
        return ordered if after is None else ordered.where(found.c.sourced_id > after)

    def _select_stored(self, table: sa.Table, change: str) -> sa.Select[Any]:
        return sa.select(sync_changes.c.sourced_id, sync_changes.c.change, sync_changes.c.fields).where(
            sync_changes.c.run_id == self.run.id,
            sync_changes.c.type == TYPES[table.name],
            sync_changes.c.change == change,
        )

    def _select_added(self, table: sa.Table, after: str | None, count: int | None) -> sa.Select[Any]:
        """The records that have the stamp of the run today, and those that had it before a later change. Each of both
        places brings `count` rows at most: a first run adds every record."""
        of_type = sync_changes.c.type == TYPES[table.name]
        today = sa.select(table.c.sourced_id).where(
            table.c.feed_id == self.run.feed_id, table.c.date_last_modified == self.run.stamp
        )
        later = sa.select(sync_changes.c.sourced_id).where(
            of_type, sync_changes.c.run_id.in_(self._select_later()), sync_changes.c.previous_stamp == self.run.stamp
        )
        other = sync_changes.alias()
        parts = []
        for part in (today, later):
            [identifier] = part.selected_columns
            is_other = sa.select(other.c.sourced_id).where(
                other.c.run_id == self.run.id, other.c.type == TYPES[table.name], other.c.sourced_id == identifier
            )
            rows = part.where(~is_other.exists())
            if after is not None:
                rows = rows.where(identifier > after)
            if count is not None:
                rows = rows.order_by(identifier).limit(count)
            parts.append(sa.select(rows.subquery()))
        added = sa.union(*parts).subquery()
        return sa.select(added.c.sourced_id, sa.literal(ADDED, CText).label("change"), ChangedRecord.no_fields())

    def _select_later(self) -> sa.Select[Any]:
        return sa.select(sync_runs.c.id).where(_is_later(self.run))


def find_changes(connection: sa.Connection, run: int) -> ChangeHistory | None:
    """The changes of a run, or those that a held run would make, without the records that it would add; None if it
    changed nothing, and for a held run whose changes are not stored. Raises CommandError for an unknown run, and for a
    run whose changes are not stored."""
    row = connection.execute(sa.select(sync_runs).where(sync_runs.c.id == run)).one_or_none()
    if row is None:
        raise CommandError(f"there is no run {run}; `roster sync list` shows the runs")
    if row.stamp is None:
        return ChangeHistory(row, ()) if row.has_changes else None
    if not row.has_changes:
        raise CommandError(
            f"the changes of the run {run} are not stored; ROSTER_CHANGE_DAYS says for how long they are"
        )
    without = sa.select(sync_runs.c.id).where(_is_later(row), sync_runs.c.stamp.is_not(None), ~sync_runs.c.has_changes)
    return ChangeHistory(row, connection.scalars(without.order_by(sync_runs.c.id)).all())


@dataclass(frozen=True)
class RecordChange:
    """What a run did to a record. `run`: its number; `at`: the stamp that the record has since; `change`, `fields`: as
    in `ChangedRecord`."""

    run: int
    at: str
    change: str
    fields: dict[str, dict[str, Any]]


def read_record_history(connection: sa.Connection, table: sa.Table, sourced_id: str, count: int) -> list[RecordChange]:
    """Returns the latest `count` stored changes of a record, the newest first. The last one is the run that added the
    record, if its changes are still stored."""
    stored = (
        sa.select(sync_changes, sync_runs.c.stamp)
        .join(sync_runs, sync_runs.c.id == sync_changes.c.run_id)
        .where(sync_changes.c.sourced_id == sourced_id, sync_changes.c.type == TYPES[table.name])
        # A held run has not changed it.
        .where(sync_runs.c.stamp.is_not(None))
        .order_by(sync_changes.c.run_id.desc())
        .limit(count)
    )
    rows = connection.execute(stored).all()
    found = [RecordChange(row.run_id, row.stamp.isoformat(), row.change, _name_values(row.fields)) for row in rows]
    record = sa.select(table.c.feed_id, table.c.date_last_modified).where(table.c.sourced_id == sourced_id)
    now = connection.execute(record).one_or_none()
    if now is not None and len(found) < count:
        first = rows[-1].previous_stamp if rows else now.date_last_modified
        is_first = (sync_runs.c.stamp == first) & (sync_runs.c.feed_id == now.feed_id)
        # Without the changes of that run, it may have added the record or changed it.
        made = connection.scalar(sa.select(sync_runs.c.id).where(is_first, sync_runs.c.has_changes))
        found += [] if made is None else [RecordChange(made, first.isoformat(), ADDED, {})]
    return found


def _is_later(run: sa.Row[Any]) -> sa.ColumnElement[bool]:
    """The condition that a run of the same feed came later."""
    return sa.and_(sync_runs.c.feed_id == run.feed_id, sync_runs.c.id > run.id)


def _choose_tables(kind: str | None) -> Sequence[sa.Table]:
    return [table for table in ROSTER_TABLES if kind is None or TYPES[table.name] == kind]
