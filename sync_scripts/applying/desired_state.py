"""The desired state: the records and parts that an export describes, as typed rows, for all records that may differ
from the stored ones.

The records of a table are a SELECT over its staged files, which runs where it is needed. Parts and the districts of
orgs are in temporary tables, because several statements read them. A record whose line did not change keeps its parts,
except the roles that follow from enrollments, which depend on rows of other files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from roster_service.db import tables
from roster_service.roster.references import OWNERS
from roster_service.roster.vocabulary import GUARDIAN_ROLES
from sync_scripts.applying.lost_references import Amended, LostRecords, amend_references
from sync_scripts.applying.org_tree import FeedDistrict, store_districts, store_parents
from sync_scripts.applying.parts import (
    SelectedRows,
    add_enrollment_roles,
    find_own_file,
    find_profile,
    select_current,
    select_identified_parts,
)
from sync_scripts.formats.model import METADATA, Format, Part, StagedFile
from sync_scripts.staging.retained import ACTIVE, Retention, is_live
from sync_scripts.staging.temporary import analyze_temporary, create_temporary, insert_rows, store_ids

# The columns that the write step sets by itself.
OWN_COLUMNS = frozenset(
    {
        "feed_id",
        "status",
        "date_last_modified",
        "label_id",
        "school_opens",
        "parts_changed",
        "teachers_changed",
        "ended_by_need",
    }
)


@dataclass(frozen=True)
class DesiredPart:
    """The rows of a part, in a temporary table. `owners` selects the ids of the records whose parts are complete in
    it."""

    part: Part
    rows: sa.Table
    owners: SelectedRows


@dataclass(frozen=True)
class DesiredState:
    """The roster that an export describes. `records`: per roster table, the SELECT of the records that may differ, with
    every column of the table except `OWN_COLUMNS`; `parts`: per table of parts, its rows; `amended`: per roster table,
    what stored records without a row lose or get."""

    records: Mapping[sa.Table, SelectedRows]
    parts: Mapping[sa.Table, DesiredPart]
    amended: Mapping[sa.Table, Amended]


def make_desired_state(
    connection: sa.Connection, form: Format, retention: Retention, district: FeedDistrict, moved: Amended | None
) -> DesiredState:
    """Makes the desired state from the staged files of `retention`, which have passed their checks. `district`: of the
    feed in this run; `moved`: of `place_enrollments`."""
    staged = retention.staged
    placed = district.set_parents(retention.include_retained(staged["orgs"]), staged["orgs"])
    above = {"parent_id": store_parents(connection, placed), "district_id": store_districts(connection, placed)}
    lost_orgs = _find_lost_orgs(connection, retention, above["parent_id"])
    lost = LostRecords(connection, form.roster, retention, lost_orgs)
    records: dict[sa.Table, SelectedRows] = {}
    for file in staged.values():
        table = file.file.table
        if table is not None and table not in records:
            computed = above if table is tables.orgs else {}
            records[table] = _unite_records(table, computed, retention)
    parts: dict[sa.Table, DesiredPart] = {}
    for part in form.parts:
        profiles = parts[tables.user_profiles].rows if tables.user_profiles in parts else None
        if all(name in staged for name in part.files):
            parts[part.table] = _make_desired_part(connection, part, retention, profiles, lost)
        elif part.table is tables.user_roles and (owners := _find_losing(connection, retention, profiles, lost_orgs)):
            parts[part.table] = _amend_roles(connection, part, retention, profiles, lost_orgs, owners=owners)
            records.setdefault(part.owner, _select_none(part.owner))
    for desired_part in parts.values():
        analyze_temporary(connection, desired_part.rows)
    amended = dict(amend_references(connection, form.roster, retention, lost))
    if moved is not None:
        amended[tables.enrollments] = moved
    for table in amended:
        records.setdefault(table, _select_none(table))
    return DesiredState(records, parts, amended)


def _find_lost_orgs(connection: sa.Connection, retention: Retention, current: sa.Table) -> sa.Table | None:
    """A temporary table of the ids of the orgs that are not active after the run, and were before it, or are the place
    of a role of somebody who returns; None for none. `current`: those after it."""
    orgs, roles = tables.orgs, tables.user_roles
    returning = [is_live(roles.c.user_id, file) for file in retention.list_files(tables.users)]
    is_place = [sa.exists().where(roles.c.org_id == orgs.c.sourced_id, each) for each in returning]
    found = sa.select(orgs.c.sourced_id).where(
        orgs.c.feed_id == retention.feed_id,
        ~sa.exists().where(current.c.sourced_id == orgs.c.sourced_id),
        sa.or_(orgs.c.status == ACTIVE, *is_place),
    )
    return store_ids(connection, "ended_orgs", found) if connection.scalar(sa.select(sa.exists(found))) else None


def _select_at(lost: sa.Table) -> sa.Select[Any]:
    """The ids of the users with a stored role at a lost org."""
    roles = tables.user_roles
    return sa.select(roles.c.user_id.label("sourced_id")).where(roles.c.org_id.in_(sa.select(lost.c.sourced_id)))


def _find_losing(
    connection: sa.Connection, retention: Retention, profiles: sa.Table | None, lost_orgs: sa.Table | None
) -> sa.Table | None:
    """A temporary table of the ids of the users with a stored role at a lost org, or whose profile is gone; None for
    none. `profiles`: those after the run; None: as they are."""
    roles, users = tables.user_roles, tables.users
    found = [] if lost_orgs is None else [_select_at(lost_orgs)]
    if profiles is not None:
        is_gone = (roles.c.profile_id.is_not(None), find_profile(roles, profiles).is_(None))
        # Who is gone has no profile after the run, and comes back with both.
        staged = (is_live(users.c.sourced_id, file) for file in retention.list_files(users))
        stays = [each for each in (retention.is_active_after(users, users), *staged) if each is not None]
        is_own = (users.c.sourced_id == roles.c.user_id, users.c.feed_id == retention.feed_id, sa.or_(*stays))
        found.append(sa.select(roles.c.user_id.label("sourced_id")).where(*is_gone, sa.exists().where(*is_own)))
    losing = sa.union(*found).subquery() if found else None
    if losing is None or not connection.scalar(sa.select(sa.exists(sa.select(losing.c.sourced_id)))):
        return None
    return store_ids(connection, f"owners_{roles.name}", sa.select(losing.c.sourced_id))


def _amend_roles(
    connection: sa.Connection,
    part: Part,
    retention: Retention,
    profiles: sa.Table | None,
    lost_orgs: sa.Table | None,
    *,
    owners: sa.Table,
) -> DesiredPart:
    """The roles of `owners`, where the export has no roles: all but those at lost orgs, without profiles that are
    gone."""
    rows, roles = create_temporary(connection, f"desired_{part.table.name}", part.table.columns), tables.user_roles
    columns: dict[str, sa.ColumnElement[Any]] = {column.name: column for column in roles.c}
    if profiles is not None:
        columns["profile_id"] = find_profile(roles, profiles)
    of_owners = (roles.c.user_id.in_(sa.select(owners.c.sourced_id)), roles.c.origin == "export")
    kept = sa.select(*(column.label(name) for name, column in columns.items())).where(*of_owners)
    insert_rows(connection, rows, kept)
    if lost_orgs is not None:
        _drop_roles(connection, rows, lost_orgs)
    add_enrollment_roles(connection, rows, retention, owners)
    return DesiredPart(part, rows, sa.select(owners.c.sourced_id))


def _drop_roles(connection: sa.Connection, rows: sa.Table, lost: sa.Table) -> None:
    """A role ends with its org. It returns with a row of its own."""
    connection.execute(sa.delete(rows).where(rows.c.org_id.in_(sa.select(lost.c.sourced_id))))


def _select_none(table: sa.Table) -> sa.Select[Any]:
    return sa.select(*(column for column in table.c if column.name not in OWN_COLUMNS)).where(sa.false())


def _make_desired_part(
    connection: sa.Connection,
    part: Part,
    retention: Retention,
    profiles: sa.Table | None,
    lost: LostRecords,
) -> DesiredPart:
    staged, lost_orgs = retention.staged, lost.find(tables.orgs)
    rows = create_temporary(connection, f"desired_{part.table.name}", part.table.columns)
    own_file = find_own_file(part, staged)
    owners = None
    if own_file is None:
        owners = _find_owners(connection, part, retention, lost)
        views = {name: _select_view(staged[name], part, retention) for name in part.files}
        insert_rows(connection, rows, part.rows(views))
        _keep_parts(connection, part, rows, retention, owners, lost)
    else:
        files = {name: staged[name] for name in part.files}
        views = {name: file if file is own_file else retention.include_retained(file) for name, file in files.items()}
        insert_rows(connection, rows, select_identified_parts(part, own_file, views, retention, profiles, lost_orgs))
    if part.table is tables.user_roles:
        if lost_orgs is not None and own_file is None:
            _drop_roles(connection, rows, lost_orgs)
        add_enrollment_roles(connection, rows, retention, owners)
    all_owners = select_current(part.owner, retention) if owners is None else sa.select(owners.c.sourced_id)
    return DesiredPart(part, rows, all_owners)


def _unite_records(table: sa.Table, computed: Mapping[str, sa.Table], retention: Retention) -> SelectedRows:
    """The rows of all files with records of the table. In a tree, also the retained records, because their computed
    columns may change with a row above them."""
    rows = [_select_records(file, table, computed) for file in retention.list_files(table)]
    condition = retention.is_retained(table, table) if computed else None
    if condition is not None:
        columns = {name: table.c[name] for name in rows[0].selected_columns.keys()}  # noqa: SIM118  (no mapping)
        own = {name: _look_up(found, name, table.c.sourced_id) for name, found in computed.items()}
        rows.append(sa.select(*{**columns, **own}.values()).where(condition))
    return rows[0] if len(rows) == 1 else sa.union_all(*rows)


def _select_view(file: StagedFile, part: Part, retention: Retention) -> StagedFile:
    """The rows of a file that the SELECT of a part reads: the staged rows of the owner's file, and the staged and the
    retained rows of any other file."""
    return file if file.file.table is part.owner else retention.include_retained(file)


def _find_owners(connection: sa.Connection, part: Part, retention: Retention, lost: LostRecords) -> sa.Table | None:
    """A temporary table of the ids of the records whose parts may differ; None: the parts of all records may."""
    if part.owner not in retention.absent:
        return None
    file = retention.list_files(part.owner)[0]
    ids: list[SelectedRows] = [sa.select(file["sourcedId"].label("sourced_id")).where(file.live)]
    if part.table is tables.user_roles:
        enrolled = store_ids(connection, "enrolled_anew", sa.union(*_list_reenrolled(retention)))
        ids.append(select_current(part.owner, retention, only=("sourced_id", enrolled)))
        if (lost_orgs := lost.find(tables.orgs)) is not None:
            at_lost = store_ids(connection, "users_at_ended_orgs", _select_at(lost_orgs).distinct())
            ids.append(select_current(part.owner, retention, only=("sourced_id", at_lost)))
    elif (condition := retention.is_retained(part.owner, part.owner)) is not None and (
        gone := _find_gone(part, lost)
    ) is not None:
        # Everybody else who names them has a staged row, without them.
        naming = sa.select(part.owner.c.sourced_id).join(part.table, OWNERS[part.table] == part.owner.c.sourced_id)
        ids.append(naming.where(condition, part.table.c.agent_id.in_(sa.select(gone.c.sourced_id))))
    return store_ids(connection, f"owners_{part.table.name}", sa.union(*ids) if len(ids) > 1 else ids[0])


def _list_reenrolled(retention: Retention) -> Iterator[SelectedRows]:
    """The ids of the users with an enrollment that is new, changed, gone or rejected, or in a class that is."""
    classes = [file["sourcedId"].label("sourced_id") for file in retention.list_with_rejected(tables.classes)]
    moved = sa.union_all(
        *(sa.select(name) for name in classes), sa.select(retention.absent[tables.classes].c.sourced_id)
    ).subquery()
    for file in retention.list_with_rejected(tables.enrollments):
        yield sa.select(file["userSourcedId"].label("sourced_id"))
        of_moved = file["classSourcedId"].in_(sa.select(moved.c.sourced_id))
        yield sa.select(file["userSourcedId"].label("sourced_id")).where(of_moved)
    stored = tables.enrollments.alias()
    condition, moved_ids = retention.is_active_after(tables.enrollments, stored), sa.select(moved.c.sourced_id)
    if condition is not None:
        yield sa.select(stored.c.user_id.label("sourced_id")).where(stored.c.class_id.in_(moved_ids), condition)
    for found in (retention.absent, retention.orphans, retention.returning):
        if tables.enrollments in found:
            stored, gone = tables.enrollments.alias(), found[tables.enrollments]
            yield sa.select(stored.c.user_id.label("sourced_id")).join_from(
                gone, stored, stored.c.sourced_id == gone.c.sourced_id
            )


def _keep_parts(
    connection: sa.Connection,
    part: Part,
    rows: sa.Table,
    retention: Retention,
    owners: sa.Table | None,
    lost: LostRecords,
) -> None:
    """Replaces the parts of some records by their stored ones: of retained records, and of `owners` without a staged
    row. An agent ends with its own record."""
    gone = _find_gone(part, lost)
    if owners is not None and part.table is not tables.user_roles and gone is None:
        # Each of them has a staged row.
        return
    if owners is None:
        owner_records = part.owner.alias()
        is_retained = retention.is_retained(part.owner, owner_records)
        keepers = [] if is_retained is None else [sa.select(owner_records.c.sourced_id).where(is_retained)]
    else:
        not_staged = [
            ~sa.exists().where(file["sourcedId"] == owners.c.sourced_id, file.live)
            for file in retention.list_files(part.owner)
        ]
        keepers = [sa.select(owners.c.sourced_id).where(*not_staged)]
    if not keepers:
        return
    kept = store_ids(connection, f"kept_{part.table.name}", sa.union(*keepers))
    owner = OWNERS[part.table]
    connection.execute(sa.delete(rows).where(rows.c[owner.name].in_(sa.select(kept.c.sourced_id))))
    stored = sa.select(part.table).where(owner.in_(sa.select(kept.c.sourced_id)))
    if part.table is tables.user_roles:
        # The roles that follow from enrollments are computed anew.
        stored = stored.where(tables.user_roles.c.origin == "export")
    elif gone is not None:
        agents = tables.user_agents.c
        number = sa.func.row_number().over(partition_by=agents.user_id, order_by=agents.ordinal)
        stored = sa.select(agents.user_id, number.label(agents.ordinal.name), agents.agent_id).where(
            owner.in_(sa.select(kept.c.sourced_id)), agents.agent_id.not_in(sa.select(gone.c.sourced_id))
        )
    insert_rows(connection, rows, stored)


def _find_gone(part: Part, lost: LostRecords) -> sa.Table | None:
    """The ids of the agents who are gone, if the part is of agents; None for none."""
    return lost.find(tables.users) if part.table is tables.user_agents else None


def _select_records(file: StagedFile, table: sa.Table, computed: Mapping[str, sa.Table]) -> sa.Select[Any]:
    """The records of a file, with every column of the table except `OWN_COLUMNS`. A column that the format does not
    have is NULL, even if the stored record has a value."""
    columns: dict[str, sa.ColumnElement[Any]] = {
        cell.column.name: sa.type_coerce(cell.kind.convert(file[cell.header]), cell.column.type)
        for cell in file.file.cells
        if cell.column is not None
    }
    if METADATA in table.c:
        columns[METADATA] = _select_metadata(file, table)
    columns["fingerprint"] = file.line_hash
    for name, found in computed.items():
        columns[name] = _look_up(found, name, file["sourcedId"])
    for column in table.columns:
        if column.name not in OWN_COLUMNS:
            columns.setdefault(column.name, sa.cast(sa.null(), column.type))
    return sa.select(*(column.label(name) for name, column in columns.items())).where(file.live)


def _select_metadata(file: StagedFile, table: sa.Table) -> sa.ColumnElement[Any]:
    """The metadata of the rows. No interface shows that of staff, so a row that tells its role, as in 1.1, keeps it for
    the other roles alone."""
    if table is not tables.users or not any(cell.header == "role" for cell in file.file.cells):
        return file.metadata
    return sa.case((file["role"].in_(("student", *GUARDIAN_ROLES)), file.metadata))


def _look_up(found: sa.Table, name: str, identifier: sa.ColumnElement[str]) -> sa.ColumnElement[Any]:
    return sa.select(found.c[name]).where(found.c.sourced_id == identifier).scalar_subquery()
