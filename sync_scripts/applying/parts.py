"""The parts of users: roles and profiles that have ids, and the roles that follow from enrollments.

The row of a part that has an id decides about it, and not the row of its user. Stored roles have no ids if the sync
loaded them before it stored ids, or from another file. A bulk export gives them their ids. Until then the sync refuses
a delta of roles, because any of its rows may be a stored role without an id.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import sqlalchemy as sa

from roster_service.db import tables
from roster_service.db.tables import CText, user_roles, users
from roster_service.roster.vocabulary import GUARDIAN_ROLES
from sync_scripts.formats.model import CsvFile, Format, Part, Staged, StagedFile
from sync_scripts.reading.rejections import Findings, Rejection, refuse_if
from sync_scripts.staging.retained import ACTIVE, TO_BE_DELETED, Retention
from sync_scripts.staging.temporary import analyze_temporary, create_temporary, insert_rows

SelectedRows = sa.Select[Any] | sa.CompoundSelect[Any]
NEEDS_BULK = "must be loaded in bulk before a delta: the stored roles have no ids yet that a row could name"


def find_own_file(part: Part, staged: Staged) -> StagedFile | None:
    """The file whose rows are the parts; None where the parts are items of a list or follow from other files."""
    return next((staged[name] for name in part.files if staged[name].file.kept_in is part.table), None)


# --- before the checks ----------------------------------------------------------------------------------------------


def refuse_delta_without_ids(connection: sa.Connection, retention: Retention) -> None:
    """Raises RefusedExportError for a delta whose rows may be stored roles without ids."""
    refuse_if(Findings.of(_find_deltas_without_ids(connection, retention)))


def _find_deltas_without_ids(connection: sa.Connection, retention: Retention) -> Iterator[Rejection]:
    for file in (retention.staged[name] for name in retention.deltas if name in retention.staged):
        if file.file.kept_in is user_roles:
            without_ids = sa.exists().where(retention.is_own_part(file.file, user_roles), user_roles.c.row_id.is_(None))
            if connection.scalar(sa.select(sa.and_(sa.exists().select_from(file.table), without_ids))):
                yield Rejection(file.file.file_name, NEEDS_BULK)


# --- the parts after the run ----------------------------------------------------------------------------------------


def select_identified_parts(
    part: Part,
    file: StagedFile,
    views: Staged,
    retention: Retention,
    profiles: sa.Table | None,
    lost: sa.Table | None,
) -> SelectedRows:
    """The rows of a part: the rows of its file, and the retained ones. `profiles`: the profiles after the run; a
    retained role loses its profile if the profile is gone. None: the run does not change the profiles. `lost`: the ids
    of the orgs with which retained roles end; None for none."""
    rows: SelectedRows = part.rows(views)
    if retention.is_retained_part(file.file, part.table) is not None:
        rows = _add_retained(rows.subquery("staged_parts"), part.table, file.file, retention, profiles)
    if lost is not None and part.table is user_roles:
        every = rows.subquery("every_role")
        rows = sa.select(*every.c).where(every.c.org_id.not_in(sa.select(lost.c.sourced_id)))
    return rows if part.number is None else part.number(rows.subquery("unnumbered"), views)


def _add_retained(
    staged: sa.Subquery, table: sa.Table, file: CsvFile, retention: Retention, profiles: sa.Table | None
) -> SelectedRows:
    stored = table.alias()
    kept: dict[str, sa.ColumnElement[Any]] = {column.name: stored.c[column.name] for column in staged.c}
    new = sa.select(*staged.c)
    if table is user_roles:
        without_ids = _select_users_without_ids(file, retention)
        kept["ordinal"] = sa.case((stored.c.user_id.in_(without_ids), stored.c.ordinal))
        if profiles is not None:
            kept["profile_id"] = find_profile(stored, profiles)
        if file.name not in retention.deltas:
            new = new.where(staged.c.user_id.not_in(without_ids))
            kept["row_id"] = sa.func.coalesce(stored.c.row_id, _find_row_id(stored, staged))
    is_retained = retention.is_retained_part(file, stored)
    if is_retained is None:
        raise TypeError("no part is retained")
    return sa.union_all(new, sa.select(*(column.label(name) for name, column in kept.items())).where(is_retained))


def find_profile(role: sa.FromClause, profiles: sa.Table) -> sa.ColumnElement[Any]:
    """The id of the profile of a role; NULL if it is not among `profiles`, those after the run."""
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
    for file in form.files:
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


def select_current(
    table: sa.Table, retention: Retention, *names: str, only: tuple[str, sa.Table] | None = None
) -> SelectedRows:
    """(id, the columns `names`) of every record of the feed that is active after the run: the staged ones, and the
    stored ones that stay active without a staged row. `only`: a column, and the table of the ids to which it is
    limited."""
    found: list[SelectedRows] = []
    for file in retention.list_files(table):
        cells = {cell.column.name: cell for cell in file.file.cells if cell.column is not None}
        columns = [cells[name].kind.convert(file[cells[name].header]).label(name) for name in names]
        chosen = [] if only is None else [file[cells[only[0]].header].in_(sa.select(only[1].c.sourced_id))]
        found.append(sa.select(file["sourcedId"].label("sourced_id"), *columns).where(file.live, *chosen))
    stored = table.alias()
    condition = retention.is_active_after(table, stored)
    if condition is not None:
        chosen = [] if only is None else [stored.c[only[0]].in_(sa.select(only[1].c.sourced_id))]
        found.append(sa.select(stored.c.sourced_id, *(stored.c[name] for name in names)).where(condition, *chosen))
    return found[0] if len(found) == 1 else sa.union_all(*found)


# The role at a school that means the same as a role in one of its classes. Any other role has the same word.
ROLES_OF_ENROLLMENTS: Mapping[str, str] = {"administrator": "siteAdministrator", "ext:aide": "aide"}


def add_enrollment_roles(
    connection: sa.Connection, roles: sa.Table, retention: Retention, owners: sa.Table | None
) -> None:
    """Adds the roles that follow from enrollments to `roles`, the table of the desired roles. A user with an enrollment
    in a class belongs to its school, with the role that the enrollment names, even if the export gives the user no role
    there. A guardian's role there does not count. `owners`: the ids of the users whose roles may differ; None: all.
    """
    missing = _select_missing_roles(connection, roles, retention, owners)
    known = (
        sa.select(roles.c.user_id, sa.func.max(roles.c.ordinal).label("last"))
        .group_by(roles.c.user_id)
        .subquery("known")
    )
    number = sa.func.row_number().over(partition_by=missing.c.user_id, order_by=(missing.c.org_id, missing.c.role))
    turn = sa.func.row_number().over(partition_by=(missing.c.user_id, missing.c.org_id), order_by=missing.c.role)
    there = sa.select(roles.c.user_id, roles.c.org_id).distinct().subquery("there")
    same = sa.and_(there.c.user_id == missing.c.user_id, there.c.org_id == missing.c.org_id)
    first_there = sa.and_(turn == 1, there.c.user_id.is_(None))
    rows = sa.select(
        missing.c.user_id,
        (sa.func.coalesce(known.c.last, 0) + number).label("ordinal"),
        missing.c.org_id,
        missing.c.role,
        sa.case((first_there, "primary"), else_="secondary").label("role_type"),
        sa.literal("enrollment", CText).label("origin"),
    ).select_from(missing.outerjoin(known, known.c.user_id == missing.c.user_id).outerjoin(there, same))
    insert_rows(connection, roles, rows)


def _select_missing_roles(
    connection: sa.Connection, roles: sa.Table, retention: Retention, owners: sa.Table | None
) -> sa.Subquery:
    """(user, org, role) for enrollments whose user has no role, or only a guardian's, at the school of the class."""
    names = ("user_id", "class_id", "school_id", "role")
    only = None if owners is None else ("user_id", owners)
    found = select_current(tables.enrollments, retention, *names, only=only)
    classes = select_current(tables.classes, retention, "school_id").subquery()
    have = roles.alias()
    is_belonging = have.c.role.not_in(GUARDIAN_ROLES)
    if owners is None:
        # This pass keeps few enrollments: those without a role at their school, or in a class of another school.
        analyze_temporary(connection, roles, have.c.user_id.name, have.c.org_id.name)
        every = found.subquery()
        at_its_school = sa.and_(have.c.user_id == every.c.user_id, have.c.org_id == every.c.school_id, is_belonging)
        seen = every.outerjoin(have, at_its_school).outerjoin(classes, classes.c.sourced_id == every.c.class_id)
        found = sa.select(*every.c).select_from(seen)
        found = found.where(sa.or_(have.c.user_id.is_(None), classes.c.school_id != every.c.school_id))
    # The planner would not guess how few they are, so put them into an analyzed table.
    columns = [sa.column(name, CText) for name in ("sourced_id", *names)]
    enrollments = create_temporary(connection, "enrollments_of_owners", columns)
    insert_rows(connection, enrollments, found)
    analyze_temporary(connection, enrollments)
    role = sa.case(
        *(
            (enrollments.c.role == word, sa.literal(at_school, CText))
            for word, at_school in ROLES_OF_ENROLLMENTS.items()
        ),
        else_=enrollments.c.role,
    ).label("role")

    def lacks(org_id: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
        return ~sa.exists().where(have.c.user_id == enrollments.c.user_id, have.c.org_id == org_id, is_belonging)

    # Hardly any enrollment is left after these conditions, so to leave out equal rows costs nothing.
    of_class = sa.select(enrollments.c.user_id, classes.c.school_id.label("org_id"), role).where(
        classes.c.sourced_id == enrollments.c.class_id, lacks(classes.c.school_id)
    )
    return of_class.distinct().subquery("missing")
