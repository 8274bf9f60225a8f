"""Identified parts: roles and profiles, which are rows of a file of their own and have the ids of these rows.

The row of such a part decides about it, and not the row of its user. Stored roles have no ids if the sync loaded them
before it stored ids, or from another file. A bulk export gives them their ids. Until then the sync refuses a delta of
roles, because any of its rows may be a stored role without an id.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from roster_service.db.tables import CText, user_roles, users
from sync_scripts.formats.model import CsvFile, Format, Part, Staged, StagedFile
from sync_scripts.reading.rejections import Findings, Rejection, refuse_if
from sync_scripts.staging.retained import ACTIVE, NOTHING_LEFT_OUT, TO_BE_DELETED, Retention

Rows = sa.Select[Any] | sa.CompoundSelect[Any]
NEEDS_BULK = "must be loaded in bulk before a delta: the stored roles have no ids yet that a row could name"


def find_own_file(part: Part, staged: Staged) -> StagedFile | None:
    """The file whose rows are the parts; None where the parts are items of a list or follow from other files."""
    return next((staged[name] for name in part.files if staged[name].file.kept_in is part.table), None)


# --- before the checks ----------------------------------------------------------------------------------------------


def refuse_delta_without_ids(connection: sa.Connection, staged: Staged, feed_id: int, deltas: frozenset[str]) -> None:
    """Raises RefusedExportError for a delta whose rows may be stored roles without ids."""
    refuse_if(
        Findings.of(
            _find_deltas_without_ids(connection, staged, Retention(feed_id, staged, deltas, {}, NOTHING_LEFT_OUT))
        )
    )


def _find_deltas_without_ids(connection: sa.Connection, staged: Staged, retention: Retention) -> Iterator[Rejection]:
    for file in (staged[name] for name in retention.deltas if name in staged):
        if file.file.kept_in is user_roles:
            without_ids = sa.exists().where(retention.is_own_part(file.file, user_roles), user_roles.c.row_id.is_(None))
            if connection.scalar(sa.select(sa.and_(sa.exists().select_from(file.table), without_ids))):
                yield Rejection(file.file.file_name, NEEDS_BULK)


# --- the parts after the run ----------------------------------------------------------------------------------------


def select_identified_parts(
    part: Part, file: StagedFile, views: Staged, retention: Retention, profiles: sa.Table | None
) -> Rows:
    """The rows of a part: the rows of its file, and the retained ones. `profiles`: the profiles after the run; a
    retained role loses its profile if the profile is gone. None: the run does not change the profiles."""
    rows: Rows = part.rows(views)
    if retention.is_retained_part(file.file, part.table) is not None:
        rows = _add_retained(rows.subquery("staged_parts"), part.table, file.file, retention, profiles)
    return rows if part.number is None else part.number(rows.subquery("unnumbered"), views)


def _add_retained(
    staged: sa.Subquery, table: sa.Table, file: CsvFile, retention: Retention, profiles: sa.Table | None
) -> Rows:
    stored = table.alias()
    kept: dict[str, sa.ColumnElement[Any]] = {column.name: stored.c[column.name] for column in staged.c}
    new = sa.select(*staged.c)
    if table is user_roles:
        without_ids = _select_users_without_ids(file, retention)
        kept["ordinal"] = sa.case((stored.c.user_id.in_(without_ids), stored.c.ordinal))
        if profiles is not None:
            kept["profile_id"] = _find_profile(stored, profiles)
        if file.name not in retention.deltas:
            new = new.where(staged.c.user_id.not_in(without_ids))
            kept["row_id"] = sa.func.coalesce(stored.c.row_id, _find_row_id(stored, staged))
    is_retained = retention.is_retained_part(file, stored)
    if is_retained is None:
        raise TypeError("no part is retained")
    return sa.union_all(new, sa.select(*(column.label(name) for name, column in kept.items())).where(is_retained))


def _find_profile(role: sa.FromClause, profiles: sa.Table) -> sa.ColumnElement[Any]:
    there = sa.exists().where(profiles.c.user_id == role.c.user_id, profiles.c.profile_id == role.c.profile_id)
    return sa.case((there, role.c.profile_id), else_=sa.cast(sa.null(), CText))


def _select_users_without_ids(file: CsvFile, retention: Retention) -> sa.Select[Any]:
    """The users whose stored roles are all retained, in their order, because some of them have no ids."""
    stored = user_roles.alias()
    is_retained = retention.is_retained_part(file, stored)
    return sa.select(stored.c.user_id).where(
        stored.c.row_id.is_(None), *(() if is_retained is None else (is_retained,))
    )


def _find_row_id(role: sa.FromClause, staged: sa.Subquery) -> sa.ColumnElement[Any]:
    """The id of a staged row that equals the stored role, apart from ordinal and row id."""
    same = staged.alias()
    alike = (
        same.c[column.name].is_not_distinct_from(role.c[column.name])
        for column in same.c
        if column.name not in ("ordinal", "row_id")
    )
    return sa.select(sa.func.min(same.c.row_id)).where(*alike).scalar_subquery()


# --- after the write ------------------------------------------------------------------------------------------------


def record_part_rows(connection: sa.Connection, form: Format, roles: sa.Table | None, retention: Retention) -> None:
    """Stores two facts that no interface shows, after the write: the row ids of roles that did not change, and which
    parts of deleted users the export has taken back. `roles`: the roles after the run; None: their row ids need no
    update."""
    if roles is not None:
        same = sa.and_(user_roles.c.user_id == roles.c.user_id, user_roles.c.ordinal == roles.c.ordinal)
        learnt = user_roles.c.row_id.is_distinct_from(roles.c.row_id)
        active = _belongs_to_user(user_roles, retention.feed_id, ACTIVE)
        connection.execute(sa.update(user_roles).where(same, learnt, active).values(row_id=roles.c.row_id))
    for file in form.all_files:
        table = file.kept_in
        if table is None:
            continue
        if file.name in retention.staged:
            is_retained = retention.is_retained_part(file, table)
            gone = [retention.is_own_part(file, table), _belongs_to_user(table, retention.feed_id, TO_BE_DELETED)]
            taken_back = gone if is_retained is None else [*gone, ~is_retained]
            connection.execute(sa.update(table).where(*taken_back).values(taken_back=True))
        else:
            # The run did not look at these parts. If their user is active again, the user returned without them.
            connection.execute(
                sa.delete(table).where(table.c.taken_back, _belongs_to_user(table, retention.feed_id, ACTIVE))
            )


def _belongs_to_user(part: sa.FromClause, feed_id: int, status: str) -> sa.ColumnElement[bool]:
    """The condition that a role or a profile belongs to a user of the feed with this status."""
    return sa.exists().where(
        users.c.sourced_id == part.c.user_id, users.c.feed_id == feed_id, users.c.status == sa.literal(status, CText)
    )
