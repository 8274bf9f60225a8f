"""Compares the desired state with the stored roster.

A record that the export no longer has is to be deleted; if it returns, it becomes active again. A change of a record's
parts is a change of the record. The children of an org or a session, which its record shows, count like its parts.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from roster_service.db.tables import ROSTER_TABLES, CText, orgs
from roster_service.feeds.sharing_members import MEMBERS, note_candidates
from roster_service.roster.references import OWNERS
from sync_scripts.applying.desired_state import OWN_COLUMNS, DesiredPart, DesiredState
from sync_scripts.applying.lost_references import Amended
from sync_scripts.staging.retained import ACTIVE, Retention, is_active
from sync_scripts.staging.temporary import Follow, analyze_temporary, create_ids, create_temporary

ADDED, CHANGED, REVIVED = "added", "changed", "revived"
KEY, CHANGE, FINGERPRINT = "sourced_id", "change", "fingerprint"
PARENT = "parent_id"
# The interfaces do not show the id of a role's row, so a role with another row id is the same role.
ROW_ID = "row_id"


@dataclass(frozen=True)
class Counts:
    """The effect of a run on the records of one type. The field names are the keys of the JSON output and of
    sync_runs.counts. `rejected`: rows of the export; all other fields count records."""

    added: int = 0
    changed: int = 0
    revived: int = 0
    tombstoned: int = 0
    unchanged: int = 0
    rejected: int = 0

    @property
    def any(self) -> bool:
        """Whether the run writes any record."""
        return bool(self.written or self.tombstoned)

    @property
    def rewritten(self) -> int:
        """Stored records that get new data."""
        return self.changed + self.revived

    @property
    def written(self) -> int:
        """Records that get new data."""
        return self.added + self.rewritten

    @property
    def stored(self) -> int:
        """Active records before the run."""
        return self.unchanged + self.changed + self.tombstoned


@dataclass(frozen=True)
class Difference:
    """The differences between the desired and the stored records of a table. `rows`: the complete rows of the records
    to write, with the kind of change in the column `change`; `gone`: a temporary table of the ids of the records to
    mark as deleted, and `orphans`: of those among them that end because they need others, None for none. `all_new`: the
    feed has no stored record, so the run inserts all desired records."""

    table: sa.Table
    rows: sa.FromClause
    gone: sa.Table
    counts: Counts
    all_new: bool
    orphans: sa.Table | None = None


def compare(connection: sa.Connection, desired: DesiredState, retention: Retention, follow: Follow) -> list[Difference]:
    """Finds the differences of each table, in the order of the roster's tables. Only reads the roster. `follow`: of
    the step."""
    return [
        _compare_table(connection, table, desired, retention)
        if table in desired.records
        else _follow_needs(connection, table, retention)
        for table in follow(ROSTER_TABLES)
        if table in desired.records or table in retention.orphans or table in retention.returning
    ]


def note_changed(connection: sa.Connection, differences: Collection[Difference]) -> bool:
    """Notes the records that the differences change, for the groups of grants with rules. Call it before they are
    written. Returns whether it has noted all that may move in the groups: an org that changes may move everything."""
    if any(each.table is orgs and each.counts.any for each in differences):
        return False
    return note_candidates(
        connection,
        {
            each.table: sa.union(sa.select(each.rows.c[KEY]), sa.select(each.gone.c.sourced_id))
            for each in differences
            if each.table in MEMBERS and each.counts.any
        },
    )


def compare_with_nothing(connection: sa.Connection, feed_id: int) -> list[Difference]:
    """The differences that mark every active record of a feed as deleted."""
    return [
        _list_deletions(connection, table, sa.select(table.c.sourced_id).where(is_active(table, feed_id)), feed_id)
        for table in ROSTER_TABLES
    ]


def _follow_needs(connection: sa.Connection, table: sa.Table, retention: Retention) -> Difference:
    """The differences of a table whose file is absent: only orphans are gone, and only what they were returns."""
    orphans = retention.orphans.get(table)
    ids = sa.select(table.c.sourced_id).where(sa.false()) if orphans is None else sa.select(orphans.c.sourced_id)
    found = replace(_list_deletions(connection, table, ids, retention.feed_id), orphans=orphans)
    if table not in retention.returning:
        return found
    columns = [column for column in table.c if column.name not in OWN_COLUMNS]
    made = create_temporary(connection, f"changed_{table.name}", [*columns, sa.column(CHANGE, CText)])
    count = _add_returning(connection, table, made, retention)
    return replace(found, rows=made, counts=replace(found.counts, revived=count))


def _list_deletions(connection: sa.Connection, table: sa.Table, ids: sa.Select[Any], feed_id: int) -> Difference:
    """The differences that mark the active records with these ids as deleted, and change nothing else."""
    gone = _make_gone(connection, table)
    tombstoned = connection.execute(gone.insert().from_select(["sourced_id"], ids)).rowcount
    active = connection.execute(sa.select(sa.func.count()).where(is_active(table, feed_id))).scalar_one()
    nothing = sa.select(table, sa.literal(CHANGED, CText).label(CHANGE)).where(sa.false()).subquery()
    counts = Counts(tombstoned=tombstoned, unchanged=active - tombstoned)
    return Difference(table, nothing, gone, counts, all_new=False)


def _compare_table(
    connection: sa.Connection, table: sa.Table, desired: DesiredState, retention: Retention
) -> Difference:
    new = desired.records[table].subquery("new")
    numbers = (sa.func.count().filter(table.c.status == ACTIVE), sa.func.count())
    active, stored = connection.execute(sa.select(*numbers).where(table.c.feed_id == retention.feed_id)).one()
    if not stored:
        rows = sa.select(*new.c, sa.literal(ADDED, CText).label(CHANGE)).subquery(f"added_{table.name}")
        added = connection.execute(sa.select(sa.func.count()).select_from(new)).scalar_one()
        return Difference(table, rows, _make_gone(connection, table), Counts(added=added), all_new=True)
    made = create_temporary(connection, f"changed_{table.name}", [*new.c, sa.column(CHANGE, CText)])
    gone = _make_gone(connection, table)
    tombstoned = connection.execute(
        gone.insert().from_select(["sourced_id"], _select_gone(table, desired, retention))
    ).rowcount
    touched = _find_touched(connection, table, desired, gone)
    written = 0
    if not all(file.is_known for file in retention.list_files(table)):
        changed = _select_changed(table, new, touched)
        written += connection.execute(made.insert().from_select(list(made.c.keys()), changed)).rowcount
    if touched is not None:
        written += _add_touched(connection, table, made, touched, gone)
    if table in retention.returning:
        written += _add_returning(connection, table, made, retention)
    if table in desired.amended:
        written += _add_amended(connection, table, made, desired.amended[table], gone)
    found = _count_changes(connection, made) if written else {}
    counts = Counts(
        added=found.get(ADDED, 0),
        changed=found.get(CHANGED, 0),
        revived=found.get(REVIVED, 0),
        tombstoned=tombstoned,
        unchanged=active - tombstoned - found.get(CHANGED, 0),
    )
    return Difference(table, made, gone, counts, all_new=False, orphans=retention.orphans.get(table))


def _count_changes(connection: sa.Connection, made: sa.Table) -> dict[str, int]:
    """The number of the rows of each kind of change."""
    analyze_temporary(connection, made, KEY, CHANGE)
    rows = connection.execute(sa.select(made.c.change, sa.func.count()).group_by(made.c.change)).all()
    return {row[0]: row[1] for row in rows}


def _select_changed(table: sa.Table, new: sa.FromClause, touched: sa.Table | None) -> sa.Select[Any]:
    """The desired records that are new, differ from the stored ones, were marked as deleted, or have changed parts."""
    both = new.outerjoin(table, table.c.sourced_id == new.c.sourced_id)
    data = [column for column in new.c if column.name not in (KEY, FINGERPRINT)]
    differs = [column.is_distinct_from(table.c[column.name]) for column in data]
    if touched is not None:
        both = both.outerjoin(touched, touched.c.sourced_id == new.c.sourced_id)
        differs.append(touched.c.sourced_id.is_not(None))
    change = sa.case((table.c.sourced_id.is_(None), ADDED), (table.c.status != ACTIVE, REVIVED), else_=CHANGED)
    return (
        sa.select(*new.c, change)
        .select_from(both)
        .where(sa.or_(table.c.sourced_id.is_(None), table.c.status != ACTIVE, *differs))
    )


def _add_touched(connection: sa.Connection, table: sa.Table, made: sa.Table, touched: sa.Table, gone: sa.Table) -> int:
    """Adds the stored records that differ although their own lines did not change and were not staged, as they are.
    Returns their number."""
    seen = made.alias()
    return _add_stored(
        connection, table, made, CHANGED, touched,
        table.c.status == ACTIVE,
        ~sa.exists().where(seen.c.sourced_id == table.c.sourced_id),
        ~sa.exists().where(gone.c.sourced_id == table.c.sourced_id),
    )  # fmt: skip


def _add_amended(connection: sa.Connection, table: sa.Table, made: sa.Table, amended: Amended, gone: sa.Table) -> int:
    """Adds the stored records that are not among the changed ones, and amends all of them. Returns the number of those
    that it adds."""
    count, name = _add_touched(connection, table, made, amended.rows, gone), amended.column.name
    same = made.c.sourced_id == amended.rows.c.sourced_id
    # The next run looks at their lines again.
    connection.execute(sa.update(made).where(same).values({name: amended.rows.c[name], FINGERPRINT: None}))
    return count


def _add_returning(connection: sa.Connection, table: sa.Table, made: sa.Table, retention: Retention) -> int:
    """Adds the stored tombstones that return with what they need, as they were. Returns their number."""
    return _add_stored(connection, table, made, REVIVED, retention.returning[table])


def _add_stored(
    connection: sa.Connection,
    table: sa.Table,
    made: sa.Table,
    change: str,
    ids: sa.Table,
    *conditions: sa.ColumnElement[bool],
) -> int:
    """Adds the stored records with these ids for which the conditions hold, as they are. Returns their number."""
    columns = (sa.literal(change, CText) if name == CHANGE else table.c[name] for name in made.c.keys())  # noqa: SIM118
    rows = sa.select(*columns).where(table.c.sourced_id.in_(sa.select(ids.c.sourced_id)), *conditions)
    return connection.execute(made.insert().from_select(list(made.c.keys()), rows)).rowcount


def _make_gone(connection: sa.Connection, table: sa.Table) -> sa.Table:
    return create_ids(connection, f"gone_{table.name}")


def _select_gone(table: sa.Table, desired: DesiredState, retention: Retention) -> sa.Select[Any]:
    """The ids of the feed's active records that the export no longer has and that are not retained."""
    absent = retention.absent.get(table)
    own = sa.and_(table.c.feed_id == retention.feed_id, table.c.status == ACTIVE)
    if absent is not None:
        gone = sa.select(absent.c.sourced_id)
        orphans = retention.orphans.get(table)
        ids = gone if orphans is None else sa.union(gone, sa.select(orphans.c.sourced_id))
        own = sa.and_(own, table.c.sourced_id.in_(ids))
    new = desired.records[table].subquery("new")
    is_retained = retention.is_retained(table, table)
    return sa.select(table.c.sourced_id).where(
        own,
        ~sa.exists().where(new.c.sourced_id == table.c.sourced_id),
        *(() if is_retained is None else (~is_retained,)),
    )


def _find_touched(connection: sa.Connection, table: sa.Table, desired: DesiredState, gone: sa.Table) -> sa.Table | None:
    """A temporary table of the ids of records whose parts or children differ; None where the table has neither."""
    found = [_select_touched(part) for part in desired.parts.values() if part.part.owner is table]
    found += _list_touched_parents(table, desired, gone)
    if not found:
        return None
    touched = create_ids(connection, f"touched_{table.name}")
    changed = sa.union(*found)
    connection.execute(touched.insert().from_select(["sourced_id"], changed))
    analyze_temporary(connection, touched)
    return touched


def _list_touched_parents(table: sa.Table, desired: DesiredState, gone: sa.Table) -> list[sa.Select[Any]]:
    """The former and the new parents of records that come, go or get another parent, for a table with parents."""
    if PARENT not in table.c:
        return []
    new, old = desired.records[table].subquery("new"), table.alias("old")
    both = new.outerjoin(old, sa.and_(old.c.sourced_id == new.c.sourced_id, old.c.status == ACTIVE))
    moved = new.c[PARENT].is_distinct_from(old.c[PARENT])
    left = sa.select(old.c[PARENT]).join(gone, gone.c.sourced_id == old.c.sourced_id).where(old.c[PARENT].is_not(None))
    parents = (new.c[PARENT], old.c[PARENT])
    return [left, *(sa.select(parent).select_from(both).where(moved, parent.is_not(None)) for parent in parents)]


def _select_touched(desired: DesiredPart) -> Any:
    """The ids of the owners with a part that is only stored, only desired, or different in both."""
    table, rows = desired.part.table, desired.rows
    owner = OWNERS[table].name
    mine = desired.owners.subquery()
    old = sa.select(table).where(table.c[owner].in_(sa.select(mine.c.sourced_id))).subquery("old")
    keys = [column.name for column in table.primary_key]
    data = [column.name for column in rows.c if column.name not in (*keys, ROW_ID)]
    same_key = sa.and_(*(rows.c[key] == old.c[key] for key in keys))
    differs = sa.or_(
        rows.c[owner].is_(None),
        old.c[owner].is_(None),
        *(rows.c[name].is_distinct_from(old.c[name]) for name in data),
    )
    both = rows.join(old, same_key, full=True)
    return sa.select(sa.func.coalesce(rows.c[owner], old.c[owner])).select_from(both).where(differs).distinct()
