"""What the export says the roster is: staged texts as typed rows, and what follows from them.

Records are SELECTs over their staged file, computed where they are needed. Parts and the districts of orgs are put
into temporary tables, because several statements read them.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    exists,
    func,
    literal,
    null,
    select,
    type_coerce,
    union,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, array

from roster_service.db import tables
from roster_service.db.tables import CText
from roster_service.db.vocabulary import GUARDIAN_ROLES
from sync_scripts.formats import Format, Part, Staged, StagedFile
from sync_scripts.temporary import analyze_temporary, create_temporary, like

# Columns that the sync itself sets.
OWN_COLUMNS = frozenset({"feed_id", "status", "date_last_modified"})
# The role at a school that follows from a role in one of its classes; any other word stays as it is.
ROLES_OF_ENROLLMENTS: Mapping[str, str] = {"administrator": "siteAdministrator", "ext:aide": "aide"}


@dataclass(frozen=True)
class Incoming:
    """The roster that an export describes: per roster table the SELECT of its records, with every column of the table
    but `OWN_COLUMNS`; per part the temporary table of its rows."""

    records: Mapping[Table, Select[Any]]
    parts: Mapping[Table, tuple[Part, Table]]


def prepare(connection: Connection, staged: Staged, form: Format) -> Incoming:
    """Makes the incoming roster of staged files that passed their checks."""
    districts = _find_districts(connection, staged["orgs"])
    records = {}
    for file in staged.values():
        table = file.file.table
        if table is not None:
            derived = {"district_id": districts} if table is tables.orgs else {}
            records[table] = _select_records(file, table, derived)
    parts = {}
    for part in form.parts:
        if all(name in staged for name in part.files):
            rows = create_temporary(connection, f"incoming_{part.table.name}", like(part.table.columns))
            _insert(connection, rows, part.rows(staged))
            parts[part.table] = (part, rows)
    _derive_roles(connection, parts[tables.user_roles][1], records)
    for _, rows in parts.values():
        analyze_temporary(connection, rows)
    return Incoming(records, parts)


def _insert(connection: Connection, table: Table, rows: Select[Any]) -> None:
    connection.execute(table.insert().from_select([column.name for column in rows.selected_columns], rows))


def _select_records(file: StagedFile, table: Table, derived: Mapping[str, Table]) -> Select[Any]:
    """Every column of the table but `OWN_COLUMNS`; one that the format does not know is empty, whatever it was."""
    columns: dict[str, ColumnElement[Any]] = {
        cell.column.name: type_coerce(cell.kind.convert(file[cell.header]), cell.column.type)
        for cell in file.file.cells
        if cell.column is not None
    }
    columns["metadata"] = _to_metadata(file)
    for name, found in derived.items():
        columns[name] = select(found.c[name]).where(found.c.sourced_id == file["sourcedId"]).scalar_subquery()
    for column in table.columns:
        if column.name not in OWN_COLUMNS:
            columns.setdefault(column.name, cast(null(), column.type))
    return select(*(column.label(name) for name, column in columns.items())).where(file.live)


def _to_metadata(file: StagedFile) -> ColumnElement[Any]:
    if not file.metadata_keys:
        return cast(null(), JSONB)
    keys = literal(list(file.metadata_keys), ARRAY(CText))
    values: ColumnElement[Any] = array(file.metadata_columns, type_=CText)
    filled = func.jsonb_strip_nulls(func.jsonb_object(cast(keys, ARRAY(CText)), values), type_=JSONB)
    return func.nullif(filled, cast(literal({}, JSONB), JSONB), type_=JSONB)


def _find_districts(connection: Connection, orgs: StagedFile) -> Table:
    """The nearest org of type district at or above each org; orgs below none are left out. Circles were refused."""
    columns = [Column("sourced_id", CText, primary_key=True), Column("district_id", CText)]
    table = create_temporary(connection, "incoming_districts", columns)
    start = select(orgs["sourcedId"].label("sourced_id"), orgs["sourcedId"].label("reached")).where(orgs.live)
    walk = start.cte("walk", recursive=True)
    here = orgs.alias()
    # A district ends its walk, so each org reaches one at most.
    walk = walk.union_all(
        select(walk.c.sourced_id, here["parentSourcedId"]).where(
            here["sourcedId"] == walk.c.reached, here["type"] != "district", here["parentSourcedId"].is_not(None)
        )
    )
    last = orgs.alias()
    found = select(walk.c.sourced_id, walk.c.reached.label("district_id")).where(
        last["sourcedId"] == walk.c.reached, last["type"] == "district"
    )
    _insert(connection, table, found)
    analyze_temporary(connection, table)
    return table


def _derive_roles(connection: Connection, roles: Table, records: Mapping[Table, Select[Any]]) -> None:
    """Adds the roles that follow from enrollments: whoever takes part in a class belongs to its school, also where
    the export forgot to say so. Being somebody's guardian there is no such belonging."""
    missing = _select_missing_roles(roles, records)
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


def _select_missing_roles(roles: Table, records: Mapping[Table, Select[Any]]) -> Subquery:
    """(user, org, role) of enrollments whose user has no role but a guardian's at the school of the enrollment or of
    its class."""
    enrollments = records[tables.enrollments].subquery()
    classes = records[tables.classes].subquery()
    role = case(
        *((enrollments.c.role == word, literal(at_school, CText)) for word, at_school in ROLES_OF_ENROLLMENTS.items()),
        else_=enrollments.c.role,
    ).label("role")
    of_enrollment = select(enrollments.c.user_id, enrollments.c.school_id.label("org_id"), role)
    of_class = select(enrollments.c.user_id, classes.c.school_id, role).where(
        classes.c.sourced_id == enrollments.c.class_id,
        classes.c.school_id != enrollments.c.school_id,
    )
    wanted = union(of_enrollment, of_class).subquery()
    have = roles.alias()
    return (
        select(wanted)
        .where(
            ~exists().where(
                have.c.user_id == wanted.c.user_id,
                have.c.org_id == wanted.c.org_id,
                have.c.role.not_in(GUARDIAN_ROLES),
            )
        )
        .subquery("missing")
    )
