"""What stored records name that ends in a run which has no row for them: a term of a class, the school year of a
course, the primary org of a user, an agent.

A bulk export that lacks a term drops the term from the rows of its classes. A delta that ends the term has no row of
these classes, so they lose it here; else they would name it, and the purge would keep it, for good. A required list
keeps its last item.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import aggregate_order_by

from roster_service.db.tables import CText, CTexts, orgs, user_roles, users
from sync_scripts.formats.model import Cell, Format
from sync_scripts.staging.retained import Retention
from sync_scripts.staging.temporary import analyze_temporary, create_temporary, insert_rows, store_ids


@dataclass(frozen=True)
class Amended:
    """What a column of stored records is after the run, which has no row for them. `rows`: a temporary table
    (sourced_id, the column)."""

    column: sa.Column[Any]
    rows: sa.Table


def amend(connection: sa.Connection, column: sa.Column[Any], found: sa.Select[Any]) -> Amended | None:
    """`found`: (sourced_id, the column); None for no row."""
    if not connection.scalar(sa.select(sa.exists(found))):
        return None
    columns = [sa.column("sourced_id", CText), sa.column(column.name, column.type)]
    rows = create_temporary(connection, f"amended_{column.table.name}", columns, key="sourced_id")
    insert_rows(connection, rows, found)
    analyze_temporary(connection, rows)
    return Amended(column, rows)


class LostRecords:
    """The records that are active before a run and not after it, by their table. Each table is asked once."""

    def __init__(
        self, connection: sa.Connection, form: Format, retention: Retention, lost_orgs: sa.Table | None
    ) -> None:
        """`form`: of the files of OneRoster; `lost_orgs`: what `find` returns for orgs."""
        self._connection = connection
        self._files = {file.table: file for file in form.files if file.table is not None}
        self._retention = retention
        self._found = {orgs: lost_orgs}

    def find(self, table: sa.Table) -> sa.Table | None:
        """A temporary table of their ids; None for none."""
        if table not in self._found:
            self._found[table] = self._store(table)
        return self._found[table]

    def _store(self, table: sa.Table) -> sa.Table | None:
        file = self._files[table]
        if file.name not in self._retention.staged and table not in self._retention.orphans:
            return None
        lost = self._retention.select_lost(file)
        is_any = self._connection.scalar(sa.select(sa.exists(lost)))
        return store_ids(self._connection, f"ended_{table.name}", lost) if is_any else None


def amend_references(
    connection: sa.Connection, form: Format, retention: Retention, lost: LostRecords
) -> Mapping[sa.Table, Amended]:
    """The records that name what is lost, by their table, which has one such column at most. `form`: of the files of
    OneRoster."""
    found = {}
    for column, target, cell in _list_optional(form):
        table, stored = column.table, column.table.alias()
        is_retained = retention.is_retained(table, stored)
        gone = None if is_retained is None else lost.find(target)
        if is_retained is None or gone is None:
            continue
        amended = amend(connection, column, _select_amended(stored, column, gone, cell).where(is_retained))
        if amended is not None:
            found[table] = amended
    return found


def _list_optional(form: Format) -> Iterator[tuple[sa.Column[Any], sa.Table, Cell]]:
    """(the column, the table that it refers to, the cell) of the references that records can lose. The parents of orgs
    are computed, and agents are parts."""
    for file in form.files:
        for cell in file.cells:
            refers, column = cell.refers, cell.column
            if (
                refers is not None
                and column is not None
                and file.table not in (None, orgs)
                and cell.may_lose
                and not cell.stands
            ):
                yield column, cast(sa.Table, form.find_file(refers.file).table), cell


def _select_amended(stored: sa.FromClause, column: sa.Column[Any], gone: sa.Table, cell: Cell) -> sa.Select[Any]:
    named, ids = stored.c[column.name], sa.select(gone.c.sourced_id)
    if column is users.c.primary_org_id:
        # In version 1.1 it is the first of the orgs of the user.
        left = sa.select(user_roles.c.org_id).where(
            user_roles.c.user_id == stored.c.sourced_id,
            user_roles.c.origin == "export",
            user_roles.c.org_id.not_in(ids),
        )
        next_one = left.order_by(user_roles.c.ordinal).limit(1).correlate(stored).scalar_subquery()
        value = next_one if cell.many else sa.cast(sa.null(), CText)
        return sa.select(stored.c.sourced_id, value.label(column.name)).where(named.in_(ids))
    if not cell.many:
        return sa.select(stored.c.sourced_id, sa.cast(sa.null(), CText).label(column.name)).where(named.in_(ids))
    items = sa.func.unnest(named).table_valued("item", with_ordinality="number").render_derived()
    kept = sa.select(sa.func.array_agg(aggregate_order_by(items.c.item, items.c.number), type_=CTexts))
    left_items = kept.where(items.c.item.not_in(ids)).correlate(stored).scalar_subquery()
    has_lost = named.overlap(sa.select(sa.func.array_agg(gone.c.sourced_id, type_=CTexts)).scalar_subquery())
    return sa.select(stored.c.sourced_id, left_items.label(column.name)).where(has_lost, left_items.is_not(None))
