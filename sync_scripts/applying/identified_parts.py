"""Parts that are rows of a file of their own: roles and profiles, with the ids of these rows.

What becomes of such a part is said by its own row, and not by its user's. Roles that came before their ids were kept,
or from another file, have none. A bulk export gives them theirs; until then a delta cannot be taken, because any of its
rows may be one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Connection,
    FromClause,
    Select,
    Subquery,
    Table,
    and_,
    case,
    cast,
    delete,
    exists,
    func,
    literal,
    null,
    select,
    union_all,
    update,
)

from roster_service.db.tables import CText, user_roles, users
from sync_scripts.formats.model import CsvFile, Format, Part, Staged, StagedFile
from sync_scripts.reading.rejections import Findings, Rejection, refuse_if
from sync_scripts.staging.retained import ACTIVE, NOTHING_LEFT_OUT, TO_BE_DELETED, Retention

Rows = Select[Any] | CompoundSelect[Any]
NEEDS_BULK = (
    "is taken as a delta only once it was loaded in bulk: the stored roles have no ids yet that a row could name"
)


def find_own_file(part: Part, staged: Staged) -> StagedFile | None:
    """The file whose rows the parts are; None where they are items of a list, or follow from other files."""
    return next((staged[name] for name in part.files if staged[name].file.kept_in is part.table), None)


# --- before --------------------------------------------------------------------------------------------------------


def refuse_delta_without_ids(connection: Connection, staged: Staged, feed_id: int, deltas: frozenset[str]) -> None:
    """Raises RefusedExportError for a delta whose rows may be stored roles without ids."""
    refuse_if(
        Findings.of(
            _find_deltas_without_ids(connection, staged, Retention(feed_id, staged, deltas, {}, NOTHING_LEFT_OUT))
        )
    )


def _find_deltas_without_ids(connection: Connection, staged: Staged, retention: Retention) -> Iterator[Rejection]:
    for file in (staged[name] for name in retention.deltas if name in staged):
        if file.file.kept_in is user_roles:
            nameless = exists().where(retention.is_own_part(file.file, user_roles), user_roles.c.row_id.is_(None))
            if connection.scalar(select(and_(exists().select_from(file.table), nameless))):
                yield Rejection(file.file.file_name, NEEDS_BULK)


# --- what there is after the run -----------------------------------------------------------------------------------


def select_identified_parts(
    part: Part, file: StagedFile, views: Staged, retention: Retention, profiles: Table | None
) -> Rows:
    """The rows of a part: those of its file, and those that stand. `profiles`: the profiles after the run; a role that
    stands names none that is gone. None: they stay as they are."""
    rows: Rows = part.rows(views)
    if retention.is_retained_part(file.file, part.table) is not None:
        rows = _add_retained(rows.subquery("said"), part.table, file.file, retention, profiles)
    return rows if part.number is None else part.number(rows.subquery("unnumbered"), views)


def _add_retained(said: Subquery, table: Table, file: CsvFile, retention: Retention, profiles: Table | None) -> Rows:
    stored = table.alias()
    kept: dict[str, ColumnElement[Any]] = {column.name: stored.c[column.name] for column in said.c}
    new = select(*said.c)
    if table is user_roles:
        nameless = _select_owners_of_nameless(file, retention)
        kept["ordinal"] = case((stored.c.user_id.in_(nameless), stored.c.ordinal))
        if profiles is not None:
            kept["profile_id"] = _name_profile(stored, profiles)
        if file.name not in retention.deltas:
            new = new.where(said.c.user_id.not_in(nameless))
            kept["row_id"] = func.coalesce(stored.c.row_id, _find_row_id(stored, said))
    is_retained = retention.is_retained_part(file, stored)
    if is_retained is None:
        raise TypeError("only where something stands is it added")
    return union_all(new, select(*(column.label(name) for name, column in kept.items())).where(is_retained))


def _name_profile(role: FromClause, profiles: Table) -> ColumnElement[Any]:
    there = exists().where(profiles.c.user_id == role.c.user_id, profiles.c.profile_id == role.c.profile_id)
    return case((there, role.c.profile_id), else_=cast(null(), CText))


def _select_owners_of_nameless(file: CsvFile, retention: Retention) -> Select[Any]:
    """The users whose stored roles stand together, in their order, because some have no ids."""
    stored = user_roles.alias()
    is_retained = retention.is_retained_part(file, stored)
    return select(stored.c.user_id).where(stored.c.row_id.is_(None), *(() if is_retained is None else (is_retained,)))


def _find_row_id(role: FromClause, said: Subquery) -> ColumnElement[Any]:
    """The id of a row that says the same."""
    same = said.alias()
    alike = (
        same.c[column.name].is_not_distinct_from(role.c[column.name])
        for column in same.c
        if column.name not in ("ordinal", "row_id")
    )
    return select(func.min(same.c.row_id)).where(*alike).scalar_subquery()


# --- what is noted -------------------------------------------------------------------------------------------------


def record_part_rows(connection: Connection, form: Format, roles: Table | None, retention: Retention) -> None:
    """Writes down what nobody is shown, once the roster is written: the ids of roles that stayed as they were, and
    what the export has taken back from users that are gone. `roles`: the roles after the run, if they were there
    before."""
    if roles is not None:
        same = and_(user_roles.c.user_id == roles.c.user_id, user_roles.c.ordinal == roles.c.ordinal)
        learnt = user_roles.c.row_id.is_distinct_from(roles.c.row_id)
        active = _belongs_to_user(user_roles, retention.feed_id, ACTIVE)
        connection.execute(update(user_roles).where(same, learnt, active).values(row_id=roles.c.row_id))
    for file in form.all_files:
        table = file.kept_in
        if table is None:
            continue
        if file.name in retention.staged:
            is_retained = retention.is_retained_part(file, table)
            gone = [retention.is_own_part(file, table), _belongs_to_user(table, retention.feed_id, TO_BE_DELETED)]
            said = gone if is_retained is None else [*gone, ~is_retained]
            connection.execute(update(table).where(*said).values(taken_back=True))
        else:
            # Nobody looked at these parts; their user may have come back without them.
            connection.execute(
                delete(table).where(table.c.taken_back, _belongs_to_user(table, retention.feed_id, ACTIVE))
            )


def _belongs_to_user(part: FromClause, feed_id: int, status: str) -> ColumnElement[bool]:
    """Whether a role or a profile is of a user of the feed with this status."""
    return exists().where(
        users.c.sourced_id == part.c.user_id, users.c.feed_id == feed_id, users.c.status == literal(status, CText)
    )
