"""The change log: what a run changes in stored records, kept so that an operator can see it later.

A change holds the fields that differ, before and after, under their names in OneRoster exports. Records that a run adds
are not in it: their stamp shows them (roster_service/feeds/change_history.py). So a first load writes nothing here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB, aggregate_order_by

from roster_service.db.tables import CText, Stamp, sync_changes, sync_runs, user_agents, user_profiles
from roster_service.db.tables import user_roles as roles
from roster_service.feeds.run_history import TYPES
from sync_scripts.applying.changes import ADDED, CHANGE, FINGERPRINT, KEY, ROW_ID, Difference
from sync_scripts.applying.desired_state import OWN_COLUMNS, DesiredPart, DesiredState
from sync_scripts.formats.oneroster import ONEROSTER_1_2

TOMBSTONED = "tombstoned"
# The names of parts, as fields of their owners.
PARTS: Mapping[sa.Table, str] = {
    roles: "roles",
    user_profiles: "userProfiles",
    user_agents: "agents",
}
# Columns of parts that no interface shows.
HIDDEN = frozenset({"ordinal", ROW_ID, "taken_back"})
_HEADERS = {cell.column: cell.header for file in ONEROSTER_1_2.files for cell in file.cells}


def record_changes(connection: sa.Connection, run: int, differences: list[Difference], desired: DesiredState) -> None:
    """Stores the changes of a run in sync_changes, before the run writes them."""
    for difference in differences:
        counts = difference.counts
        if counts.rewritten or counts.tombstoned:
            changes = select_changes(difference, desired).subquery()
            rows = sa.select(sa.literal(run), sa.literal(TYPES[difference.table.name], CText), *changes.c)
            names = ["run_id", "type", *(column.name for column in changes.c)]
            connection.execute(sync_changes.insert().from_select(names, rows))
    connection.execute(sa.update(sync_runs).where(sync_runs.c.id == run).values(has_changes=True))


def select_changes(difference: Difference, desired: DesiredState) -> Any:
    """(sourced_id, change, previous_stamp, fields) of the stored records that a difference changes, revives or marks as
    deleted. `fields`: JSON, an array of the values before and after for each field that differs."""
    table, gone = difference.table, difference.gone
    tombstoned = sa.select(
        table.c.sourced_id,
        sa.literal(TOMBSTONED, CText).label("change"),
        sa.type_coerce(table.c.date_last_modified, Stamp).label("previous_stamp"),
        sa.cast(sa.null(), JSONB).label("fields"),
    ).where(table.c.sourced_id.in_(sa.select(gone.c.sourced_id)))
    if not difference.counts.rewritten:
        return tombstoned
    return sa.union_all(_select_rewritten(difference, desired), tombstoned)


def _select_rewritten(difference: Difference, desired: DesiredState) -> sa.Select[Any]:
    table, rows = difference.table, difference.rows
    both = rows.join(table, sa.and_(table.c.sourced_id == rows.c.sourced_id, rows.c.change != ADDED))
    fields = dict(_list_fields(table, rows))
    for part in desired.parts.values():
        if part.part.owner is table:
            before, after = _collect(part, part.part.table, rows), _collect(part, part.rows, rows)
            both = both.outerjoin(before, before.c.owner == rows.c.sourced_id)
            both = both.outerjoin(after, after.c.owner == rows.c.sourced_id)
            # The run did not look at the parts of other owners.
            looked_at = rows.c.sourced_id.in_(sa.select(part.owners.subquery().c.sourced_id))
            fields[PARTS[part.part.table]] = _compare(before.c["items"], after.c["items"], looked_at)
    pairs = [member for name, value in fields.items() for member in (sa.literal(name, sa.String), value)]
    return sa.select(
        rows.c.sourced_id,
        rows.c[CHANGE],
        table.c.date_last_modified.label("previous_stamp"),
        # Fields that do not differ are NULL.
        sa.func.jsonb_strip_nulls(sa.func.jsonb_build_object(*pairs), type_=JSONB).label("fields"),
    ).select_from(both)


def _list_fields(table: sa.Table, rows: sa.FromClause) -> Iterator[tuple[str, sa.ColumnElement[Any]]]:
    for column in table.columns:
        if column.name not in OWN_COLUMNS | {KEY, FINGERPRINT}:
            yield _name_field(column), _compare(column, rows.c[column.name])


def _compare(before: sa.ColumnElement[Any], after: sa.ColumnElement[Any], *conditions: sa.ColumnElement[bool]) -> Any:
    """A JSON array of both values; NULL if they are equal or a condition does not hold."""
    return sa.case(
        (
            sa.and_(before.is_distinct_from(after), *conditions),
            sa.func.jsonb_build_array(sa.func.to_jsonb(before), sa.func.to_jsonb(after)),
        )
    )


def _collect(part: DesiredPart, source: sa.FromClause, rows: sa.FromClause) -> sa.FromClause:
    """(owner, items) of a table of parts, for the rewritten records: their parts as a JSON array, in their order."""
    owner, *others = part.part.table.columns
    shown = [column for column in others if column.name not in HIDDEN]
    item: Any
    if len(shown) == 1:
        item = source.c[shown[0].name]
    else:
        pairs = [
            member for column in shown for member in (sa.literal(_name_field(column), sa.String), source.c[column.name])
        ]
        item = sa.func.jsonb_strip_nulls(sa.func.jsonb_build_object(*pairs), type_=JSONB)
    keys = [source.c[column.name] for column in part.part.table.primary_key]
    items = sa.func.jsonb_agg(aggregate_order_by(item, *keys), type_=JSONB)
    wanted = sa.select(rows.c.sourced_id).where(rows.c[CHANGE] != ADDED)
    identifier = source.c[owner.name]
    return (
        sa.select(identifier.label("owner"), items.label("items"))
        .where(identifier.in_(wanted))
        .group_by(identifier)
        .subquery()
    )


def _name_field(column: sa.Column[Any]) -> str:
    """The header of a column in OneRoster exports; for a column that no export has, its name in the same style."""
    first, *others = column.name.split("_")
    return _HEADERS.get(column) or first + "".join(word.capitalize() for word in others)
