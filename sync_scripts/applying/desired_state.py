"""What the export says of the records that may differ from the stored ones: staged texts as typed rows, and what
follows from them.

Records are SELECTs over their staged file, computed where they are needed. Parts and the districts of orgs are put
into temporary tables, because several statements read them. What is not looked at closely keeps its parts; only the
roles that follow from enrollments may change with somebody else's row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
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
    or_,
    select,
    type_coerce,
    union,
    union_all,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, array

from roster_service.db import tables
from roster_service.db.tables import CText
from roster_service.db.vocabulary import GUARDIAN_ROLES
from sync_scripts.applying.feed_district import FeedDistrict
from sync_scripts.applying.identified_parts import Rows, find_own_file, select_identified_parts
from sync_scripts.formats.model import Format, Part, Staged, StagedFile
from sync_scripts.staging.retained import Retention
from sync_scripts.staging.temporary import analyze_temporary, copy_columns, create_temporary, keep_ids

# Columns that the sync itself sets.
OWN_COLUMNS = frozenset({"feed_id", "status", "date_last_modified"})
# The role at a school that follows from a role in one of its classes; any other word stays as it is.
ROLES_OF_ENROLLMENTS: Mapping[str, str] = {"administrator": "siteAdministrator", "ext:aide": "aide"}


@dataclass(frozen=True)
class DesiredPart:
    """The rows of a part, in a temporary table; `owners` selects the ids of the records of which they are all."""

    part: Part
    rows: Table
    owners: Rows


@dataclass(frozen=True)
class DesiredState:
    """The roster that an export describes: per roster table the SELECT of the records that may differ, with every
    column of the table but `OWN_COLUMNS`; per table of parts its rows."""

    records: Mapping[Table, Rows]
    parts: Mapping[Table, DesiredPart]


def make_desired_state(
    connection: Connection, staged: Staged, form: Format, retention: Retention, district: FeedDistrict
) -> DesiredState:
    """Makes the incoming roster of staged files that passed their checks, on their ground."""
    placed = district.set_parents(retention.include_retained(staged["orgs"]))
    above = {"parent_id": _find_parents(connection, placed), "district_id": _find_districts(connection, placed)}
    records: dict[Table, Rows] = {}
    for file in staged.values():
        table = file.file.table
        if table is not None and table not in records:
            computed = above if table is tables.orgs else {}
            records[table] = _unite_records(table, computed, staged, retention)
    parts: dict[Table, DesiredPart] = {}
    for part in form.parts:
        if all(name in staged for name in part.files):
            profiles = parts.get(tables.user_profiles)
            parts[part.table] = _make_desired_part(
                connection, part, staged, retention, None if profiles is None else profiles.rows
            )
    for it in parts.values():
        analyze_temporary(connection, it.rows)
    return DesiredState(records, parts)


def _make_desired_part(
    connection: Connection, part: Part, staged: Staged, retention: Retention, profiles: Table | None
) -> DesiredPart:
    rows = create_temporary(connection, f"desired_{part.table.name}", copy_columns(part.table.columns))
    own_file = find_own_file(part, staged)
    owners = None
    if own_file is None:
        owners = _find_owners(connection, part, staged, retention)
        views = {name: _view(staged[name], part, retention) for name in part.files}
        _insert(connection, rows, part.rows(views))
        _keep_parts(connection, part, rows, retention, owners)
    else:
        files = {name: staged[name] for name in part.files}
        views = {name: file if file is own_file else retention.include_retained(file) for name, file in files.items()}
        _insert(connection, rows, select_identified_parts(part, own_file, views, retention, profiles))
    if part.table is tables.user_roles:
        _add_enrollment_roles(connection, rows, staged, retention, owners)
    everyone = select_current(part.owner, staged, retention) if owners is None else select(owners.c.sourced_id)
    return DesiredPart(part, rows, everyone)


def _unite_records(table: Table, computed: Mapping[str, Table], staged: Staged, retention: Retention) -> Rows:
    """The rows of all files with records of the table; of trees, also the records that stand: what is derived for
    them may have changed with a row above them."""
    files = [file for file in staged.values() if file.file.table is table]
    rows = [_select_records(file, table, computed) for file in files]
    condition = retention.is_retained(table, table) if computed else None
    if condition is not None:
        columns = {name: table.c[name] for name in rows[0].selected_columns.keys()}  # noqa: SIM118  (no mapping)
        own = {name: _compute(found, name, table.c.sourced_id) for name, found in computed.items()}
        retained = {**columns, **own}
        rows.append(select(*(column.label(name) for name, column in retained.items())).where(condition))
    return rows[0] if len(rows) == 1 else union_all(*rows)


def select_current(
    table: Table, staged: Staged, retention: Retention, *names: str, only: tuple[str, Table] | None = None
) -> Rows:
    """(id, the columns `names`) of every record of the feed that is active after the run: those of the export, and
    those that remain. `only`: a column and the table of the ids that it must have."""
    found: list[Rows] = []
    for file in staged.values():
        if file.file.table is table:
            cells = {cell.column.name: cell for cell in file.file.cells if cell.column is not None}
            columns = [cells[name].kind.convert(file[cells[name].header]).label(name) for name in names]
            chosen = [] if only is None else [file[cells[only[0]].header].in_(select(only[1].c.sourced_id))]
            found.append(select(file["sourcedId"].label("sourced_id"), *columns).where(file.live, *chosen))
    stored = table.alias()
    condition = retention.is_active_after(table, stored)
    if condition is not None:
        chosen = [] if only is None else [stored.c[only[0]].in_(select(only[1].c.sourced_id))]
        found.append(select(stored.c.sourced_id, *(stored.c[name] for name in names)).where(condition, *chosen))
    return found[0] if len(found) == 1 else union_all(*found)


def _view(file: StagedFile, part: Part, retention: Retention) -> StagedFile:
    """A file as a part sees it. What the part only looks something up in includes what stands."""
    return file if file.file.table is part.owner else retention.include_retained(file)


def _find_owners(connection: Connection, part: Part, staged: Staged, retention: Retention) -> Table | None:
    """A temporary table of the ids of the records whose parts may differ; None: all of them may."""
    if part.owner not in retention.absent:
        return None
    file = next(it for it in staged.values() if it.file.table is part.owner)
    ids: list[Rows] = [select(file["sourcedId"].label("sourced_id")).where(file.live)]
    if part.table is tables.user_roles:
        enrolled = keep_ids(connection, "enrolled_anew", union(*_list_reenrolled(staged, retention)))
        ids.append(select_current(part.owner, staged, retention, only=("sourced_id", enrolled)))
    return keep_ids(connection, f"owners_{part.table.name}", union(*ids) if len(ids) > 1 else ids[0])


def _list_reenrolled(staged: Staged, retention: Retention) -> Iterator[Rows]:
    """The ids of the users with an enrollment, or a class, that came, changed, went, or was refused."""
    classes = [it["sourcedId"].label("sourced_id") for it in _find_files(tables.classes, staged, retention)]
    moved = union_all(
        *(select(name) for name in classes), select(retention.absent[tables.classes].c.sourced_id)
    ).subquery()
    for file in _find_files(tables.enrollments, staged, retention):
        yield select(file["userSourcedId"].label("sourced_id"))
        of_moved = file["classSourcedId"].in_(select(moved.c.sourced_id))
        yield select(file["userSourcedId"].label("sourced_id")).where(of_moved)
    stored = tables.enrollments.alias()
    remains, moved_ids = retention.is_active_after(tables.enrollments, stored), select(moved.c.sourced_id)
    if remains is not None:
        yield select(stored.c.user_id.label("sourced_id")).where(stored.c.class_id.in_(moved_ids), remains)
    stored, gone = tables.enrollments.alias(), retention.absent[tables.enrollments]
    yield select(stored.c.user_id.label("sourced_id")).join_from(gone, stored, stored.c.sourced_id == gone.c.sourced_id)


def _find_files(table: Table, staged: Staged, retention: Retention) -> Iterator[StagedFile]:
    """The files with records of a table, and what was refused of them."""
    for name, file in staged.items():
        if file.file.table is table:
            yield file
            if name in retention.rejected:
                yield retention.rejected[name]


def _keep_parts(connection: Connection, part: Part, rows: Table, retention: Retention, owners: Table | None) -> None:
    """Gives the stored parts to the records that stand, and to those of whom the files do not say enough."""
    if owners is None:
        owner_records = part.owner.alias()
        is_retained = retention.is_retained(part.owner, owner_records)
        keepers = [] if is_retained is None else [select(owner_records.c.sourced_id).where(is_retained)]
    else:
        said = [
            ~exists().where(file["sourcedId"] == owners.c.sourced_id, file.live)
            for file in retention.staged.values()
            if file.file.table is part.owner
        ]
        keepers = [select(owners.c.sourced_id).where(*said)]
    if not keepers:
        return
    kept = keep_ids(connection, f"kept_{part.table.name}", union(*keepers))
    owner = next(iter(part.table.columns))
    connection.execute(delete(rows).where(rows.c[owner.name].in_(select(kept.c.sourced_id))))
    stored = select(part.table).where(owner.in_(select(kept.c.sourced_id)))
    if part.table is tables.user_roles:
        # The others are derived anew.
        stored = stored.where(tables.user_roles.c.origin == "export")
    _insert(connection, rows, stored)


def _insert(connection: Connection, table: Table, rows: Rows) -> None:
    connection.execute(table.insert().from_select([column.name for column in rows.selected_columns], rows))


def _select_records(file: StagedFile, table: Table, computed: Mapping[str, Table]) -> Select[Any]:
    """Every column of the table but `OWN_COLUMNS`; one that the format does not know is empty, whatever it was."""
    columns: dict[str, ColumnElement[Any]] = {
        cell.column.name: type_coerce(cell.kind.convert(file[cell.header]), cell.column.type)
        for cell in file.file.cells
        if cell.column is not None
    }
    columns["metadata"] = _to_metadata(file)
    columns["fingerprint"] = file.line_hash
    for name, found in computed.items():
        columns[name] = _compute(found, name, file["sourcedId"])
    for column in table.columns:
        if column.name not in OWN_COLUMNS:
            columns.setdefault(column.name, cast(null(), column.type))
    return select(*(column.label(name) for name, column in columns.items())).where(file.live)


def _compute(found: Table, name: str, identifier: ColumnElement[str]) -> ColumnElement[Any]:
    return select(found.c[name]).where(found.c.sourced_id == identifier).scalar_subquery()


def _to_metadata(file: StagedFile) -> ColumnElement[Any]:
    if not file.metadata_keys:
        return cast(null(), JSONB)
    keys = literal(list(file.metadata_keys), ARRAY(CText))
    values: ColumnElement[Any] = array(file.metadata_columns, type_=CText)
    filled = func.jsonb_strip_nulls(func.jsonb_object(cast(keys, ARRAY(CText)), values), type_=JSONB)
    return func.nullif(filled, cast(literal({}, JSONB), JSONB), type_=JSONB)


def _find_parents(connection: Connection, orgs: StagedFile) -> Table:
    columns = [Column("sourced_id", CText, primary_key=True), Column("parent_id", CText)]
    table = create_temporary(connection, "desired_parents", columns)
    found = select(orgs["sourcedId"].label("sourced_id"), orgs["parentSourcedId"].label("parent_id"))
    _insert(connection, table, found)
    analyze_temporary(connection, table)
    return table


def _find_districts(connection: Connection, orgs: StagedFile) -> Table:
    """The nearest org of type district at or above each org; orgs below none are left out.

    Rows that close a circle were refused; UNION would end a walk around one."""
    columns = [Column("sourced_id", CText, primary_key=True), Column("district_id", CText)]
    table = create_temporary(connection, "desired_districts", columns)
    start = select(orgs["sourcedId"].label("sourced_id"), orgs["sourcedId"].label("reached")).where(orgs.live)
    chain = start.cte("walk", recursive=True)
    here = orgs.alias()
    # A district ends its walk, so each org reaches one at most.
    chain = chain.union(
        select(chain.c.sourced_id, here["parentSourcedId"]).where(
            here["sourcedId"] == chain.c.reached, here["type"] != "district", here["parentSourcedId"].is_not(None)
        )
    )
    last = orgs.alias()
    found = select(chain.c.sourced_id, chain.c.reached.label("district_id")).where(
        last["sourcedId"] == chain.c.reached, last["type"] == "district"
    )
    _insert(connection, table, found)
    analyze_temporary(connection, table)
    return table


def _add_enrollment_roles(
    connection: Connection, roles: Table, staged: Staged, retention: Retention, owners: Table | None
) -> None:
    """Adds the roles that follow from enrollments: whoever takes part in a class belongs to its school, also where
    the export forgot to say so. Being somebody's guardian there is no such belonging."""
    missing = _select_missing_roles(connection, roles, staged, retention, owners)
    known = select(roles.c.user_id, func.max(roles.c.ordinal).label("last")).group_by(roles.c.user_id).subquery("known")
    place = func.row_number().over(partition_by=missing.c.user_id, order_by=(missing.c.org_id, missing.c.role))
    turn = func.row_number().over(partition_by=(missing.c.user_id, missing.c.org_id), order_by=missing.c.role)
    there = select(roles.c.user_id, roles.c.org_id).distinct().subquery("there")
    same = and_(there.c.user_id == missing.c.user_id, there.c.org_id == missing.c.org_id)
    first_there = and_(turn == 1, there.c.user_id.is_(None))
    rows = select(
        missing.c.user_id,
        (func.coalesce(known.c.last, 0) + place).label("ordinal"),
        missing.c.org_id,
        missing.c.role,
        case((first_there, "primary"), else_="secondary").label("role_type"),
        literal("enrollment", CText).label("origin"),
    ).select_from(missing.outerjoin(known, known.c.user_id == missing.c.user_id).outerjoin(there, same))
    _insert(connection, roles, rows)


def _select_missing_roles(
    connection: Connection, roles: Table, staged: Staged, retention: Retention, owners: Table | None
) -> Subquery:
    """(user, org, role) of enrollments whose user has no role but a guardian's at the school of the enrollment or of
    its class."""
    names = ("user_id", "class_id", "school_id", "role")
    only = None if owners is None else ("user_id", owners)
    found = select_current(tables.enrollments, staged, retention, *names, only=only)
    classes = select_current(tables.classes, staged, retention, "school_id").subquery()
    have = roles.alias()
    is_belonging = have.c.role.not_in(GUARDIAN_ROLES)
    if owners is None:
        # One pass leaves hardly any: those without a role at their school, or in a class of another one.
        analyze_temporary(connection, roles, have.c.user_id.name, have.c.org_id.name)
        every = found.subquery()
        at_its_school = and_(have.c.user_id == every.c.user_id, have.c.org_id == every.c.school_id, is_belonging)
        seen = every.outerjoin(have, at_its_school).outerjoin(classes, classes.c.sourced_id == every.c.class_id)
        found = select(*every.c).select_from(seen)
        found = found.where(or_(have.c.user_id.is_(None), classes.c.school_id != every.c.school_id))
    # A few of them, which the planner would not guess.
    columns = [Column(name, CText) for name in ("sourced_id", *names)]
    enrollments = create_temporary(connection, "enrollments_of_owners", columns)
    _insert(connection, enrollments, found)
    analyze_temporary(connection, enrollments)
    role = case(
        *((enrollments.c.role == word, literal(at_school, CText)) for word, at_school in ROLES_OF_ENROLLMENTS.items()),
        else_=enrollments.c.role,
    ).label("role")

    def lacks(org_id: ColumnElement[str]) -> ColumnElement[bool]:
        return ~exists().where(have.c.user_id == enrollments.c.user_id, have.c.org_id == org_id, is_belonging)

    # Hardly any enrollment is left after this, so that putting together equal ones costs nothing.
    of_enrollment = select(enrollments.c.user_id, enrollments.c.school_id.label("org_id"), role).where(
        lacks(enrollments.c.school_id)
    )
    of_class = select(enrollments.c.user_id, classes.c.school_id, role).where(
        classes.c.sourced_id == enrollments.c.class_id,
        classes.c.school_id != enrollments.c.school_id,
        lacks(classes.c.school_id),
    )
    return union(of_enrollment, of_class).subquery("missing")
