"""Makes the visibility labels of records, and the departures and stamps that follow from them.

A label is what opens a record (roster_service/db/tables/roster.py). It follows from the record and from others:

- a class: its school;
- a course: its org, which has to be visible only, and the schools of its active classes. (A deleted class opens no
  course: its purge would close the course in silence.) Schools whose district is the org of the course add nothing;
- a user: the orgs of their roles, those of guardians apart;
- an enrollment: its school and that of its class, both; and besides what opens its user. Where the user has another
  role than a guardian's at one of these schools, as nearly always, that is open already;
- demographics: the label of the user.

A change of a label is a change of the record: it gets the stamp of the run, and what it was before is a departure for
those who see the former label alone. A deleted record gets no new stamp, which would postpone its purge, and its
departure has the stamp of the tombstone: whoever sees the former label alone was told then, and the purge takes both.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import aggregate_order_by

from roster_service.db import tables
from roster_service.db.tables import LABELLED, CText, CTexts, Stamp, visibility_labels
from roster_service.roster.references import PERSONS
from roster_service.roster.vocabulary import GUARDIAN_ROLES

LISTS = ("all_orgs", "any_orgs", "guardian_orgs", "listed_orgs", "student_orgs", "teacher_orgs")


def find_labels(connection: sa.Connection, table: sa.Table, rows: sa.FromClause, feed_id: int) -> sa.TableClause:
    """Returns a temporary table of (sourced_id, label_id) for rows of a feed: of the table, or about to be written into
    it; of enrollments also `school_opens`. All that their labels follow from is written already, with its own labels.
    Adds the labels that are new."""
    keyed = _KEYS[table](rows)
    columns = [sa.column(name, table.c[name].type) for name in ("sourced_id", *list_label_columns(table))]
    found = sa.table(f"labels_of_{table.name}", *columns)
    _drop(connection, found.name, f"keyed_{table.name}", f"keys_{table.name}")
    if table is tables.demographics:
        _store(connection, found.name, keyed)
    else:
        _store(connection, f"keyed_{table.name}", keyed)
        names = [column.name for column in keyed.selected_columns if column.name != "sourced_id"]
        parts = {
            "table": table.name,
            "names": ", ".join(names),
            "keys": ", ".join(f"k.{name}" for name in names),
            "joined": " AND ".join(f"k.{name} = r.{name}" for name in names),
            "lists": ", ".join(f"{_LISTS[table].get(name, _NONE)} AS {name}" for name in LISTS),
            "user": "k.user_label_id" if table is tables.enrollments else "0",
            "all": ", ".join(LISTS),
            "opens": f", {_SCHOOL_OPENS} AS school_opens" if table is tables.enrollments else "",
            "columns": "".join(f", k.{name}" for name in list_label_columns(table)[1:]),
        }
        for statement in (_MAKE_KEYS, _ADD_LABELS, _MAKE_FOUND):
            connection.execute(sa.text(statement.format(**parts)), {"feed_id": feed_id})
    connection.exec_driver_sql(f"ANALYZE pg_temp.{found.name}")
    return found


def list_label_columns(table: sa.Table) -> tuple[str, ...]:
    """Returns the columns of a table that follow from what its labels follow from."""
    return ("label_id", "school_opens") if table is tables.enrollments else ("label_id",)


def _drop(connection: sa.Connection, *names: str) -> None:
    """Drops the temporary tables of these names that there are."""
    connection.exec_driver_sql(f"DROP TABLE IF EXISTS {', '.join(f'pg_temp.{name}' for name in names)}")


def _store(connection: sa.Connection, name: str, rows: sa.Select[Any]) -> None:
    """Stores rows in a temporary table of this name."""
    columns = [sa.Column(column.name, column.type) for column in rows.selected_columns]
    sa.Table(name, sa.MetaData(), *columns, prefixes=["TEMPORARY"], postgresql_on_commit="DROP").create(connection)
    # By its names: SQLAlchemy compiles a statement on another Table object anew, and keeps it too.
    made = sa.table(name, *(sa.column(column.name) for column in columns))
    connection.execute(made.insert().from_select([column.name for column in columns], rows))


def relabel(
    connection: sa.Connection,
    table: sa.Table,
    ids: sa.Select[Any] | sa.CompoundSelect[Any],
    feed_id: int,
    stamp: datetime,
) -> sa.TableClause | None:
    """Makes the labels of the stored records with these ids anew. Returns a temporary table of the ids (`sourced_id`)
    of the records whose label is another one; None: no label is. `stamp`: of the run."""
    rows = sa.select(table).where(table.c.sourced_id.in_(ids), table.c.feed_id == feed_id).subquery("relabelled")
    found = find_labels(connection, table, rows, feed_id)
    if not connection.scalar(sa.text(_DIFFERS.format(table=table.name, found=found.name))):
        return None
    moved = sa.table(f"moved_{table.name}", sa.column("sourced_id", CText))
    _drop(connection, moved.name)
    parts = {
        "table": table.name,
        "person": PERSONS[table].name if table in PERSONS else "NULL",
        "found": found.name,
        "moved": moved.name,
        "columns": ", ".join(f"{name} = n.{name}" for name in list_label_columns(table)),
    }
    connection.execute(_with_stamp(_DEPART.format(**parts)), {"type": table.name, "stamp": stamp})
    connection.exec_driver_sql(f'CREATE TEMPORARY TABLE {moved.name} (sourced_id text COLLATE "C") ON COMMIT DROP')
    connection.execute(_with_stamp(_MOVE.format(**parts)), {"stamp": stamp})
    connection.exec_driver_sql(f"ANALYZE pg_temp.{moved.name}")
    return moved


def _with_stamp(statement: str) -> sa.TextClause:
    return sa.text(statement).bindparams(sa.bindparam("stamp", type_=Stamp))


def delete_unused_labels(connection: sa.Connection, feed_id: int) -> None:
    """Deletes the labels of a feed that no record and no departure has."""
    named = (*LABELLED, tables.departures)
    unused = [~sa.exists().where(table.c.label_id == visibility_labels.c.id) for table in named]
    connection.execute(sa.delete(visibility_labels).where(visibility_labels.c.feed_id == feed_id, *unused))


# --- what a label follows from ---------------------------------------------------------------------------------------


def _list_orgs(org_id: sa.ColumnElement[str], condition: sa.ColumnElement[bool], name: str) -> sa.ColumnElement[Any]:
    """The orgs of the rows that fulfil the condition, sorted, each once."""
    listed = sa.func.array_agg(sa.distinct(aggregate_order_by(org_id, org_id)), type_=CTexts).filter(condition)
    return sa.func.coalesce(listed, sa.literal_column(_NONE), type_=CTexts).label(name)


def _key_classes(row: sa.FromClause) -> sa.Select[Any]:
    return sa.select(row.c.sourced_id, row.c.school_id)


def _key_courses(row: sa.FromClause) -> sa.Select[Any]:
    taught, school = tables.classes.alias(), tables.orgs.alias()
    is_taught = sa.and_(taught.c.course_id == row.c.sourced_id, taught.c.status == "active")
    both = row.outerjoin(taught, is_taught).outerjoin(school, school.c.sourced_id == taught.c.school_id)
    adds = sa.and_(taught.c.school_id != row.c.org_id, school.c.district_id.is_distinct_from(row.c.org_id))
    columns = (row.c.sourced_id, row.c.org_id, _list_orgs(taught.c.school_id, adds, "taught_at"))
    return sa.select(*columns).select_from(both).group_by(row.c.sourced_id, row.c.org_id)


def _key_users(row: sa.FromClause) -> sa.Select[Any]:
    held = tables.user_roles.alias()
    is_guardian = held.c.role.in_(GUARDIAN_ROLES)
    conditions = {
        "plain": ~is_guardian,
        "guardian": is_guardian,
        "student": held.c.role == "student",
        "teacher": held.c.role == "teacher",
    }
    lists = (_list_orgs(held.c.org_id, condition, name) for name, condition in conditions.items())
    both = row.outerjoin(held, held.c.user_id == row.c.sourced_id)
    return sa.select(row.c.sourced_id, *lists).select_from(both).group_by(row.c.sourced_id)


def _key_enrollments(row: sa.FromClause) -> sa.Select[Any]:
    taught, user = tables.classes.alias(), tables.users.alias()
    both = row.outerjoin(taught, taught.c.sourced_id == row.c.class_id)
    # Values instead of NULL: equal keys are joined.
    school = sa.func.coalesce(taught.c.school_id, "", type_=CText).label("class_school_id")
    label = sa.func.coalesce(user.c.label_id, 0).label("user_label_id")
    return sa.select(row.c.sourced_id, row.c.school_id, school, label).select_from(
        both.outerjoin(user, user.c.sourced_id == row.c.user_id)
    )


def _key_demographics(row: sa.FromClause) -> sa.Select[Any]:
    user = tables.users.alias()
    return sa.select(row.c.sourced_id, user.c.label_id).select_from(
        row.outerjoin(user, user.c.sourced_id == row.c.sourced_id)
    )


_KEYS = {
    tables.classes: _key_classes,
    tables.courses: _key_courses,
    tables.users: _key_users,
    tables.enrollments: _key_enrollments,
    tables.demographics: _key_demographics,
}

# --- statements: `k` is a key of the records of a table; `u` is the label of the user of an enrollment ----------------

_NONE = "CAST('{}' AS text[])"
_SCHOOLS = "ARRAY(SELECT DISTINCT s FROM unnest(ARRAY[k.school_id, k.class_school_id]) AS s ORDER BY s)"
_HAS_ROLE = f"u.any_orgs && {_SCHOOLS}"
_SCHOOL_OPENS = "k.school_id = k.class_school_id AND coalesce(u.any_orgs @> ARRAY[k.school_id], false)"
# For each table, the lists of the label of a key; the others are empty.
_LISTS: Mapping[sa.Table, Mapping[str, str]] = {
    tables.classes: {"any_orgs": "ARRAY[k.school_id]"},
    tables.courses: {"any_orgs": "k.taught_at", "listed_orgs": "ARRAY[k.org_id]"},
    tables.users: {
        "any_orgs": "k.plain",
        "guardian_orgs": "k.guardian",
        "student_orgs": "k.student",
        "teacher_orgs": "k.teacher",
    },
    # A class that the roster does not have opens no enrollment.
    tables.enrollments: {
        "all_orgs": _SCHOOLS,
        "any_orgs": f"CASE WHEN k.class_school_id = '' THEN {_NONE} WHEN {_HAS_ROLE} THEN {_SCHOOLS} "
        f"ELSE coalesce(u.any_orgs, {_NONE}) END",
        "guardian_orgs": f"CASE WHEN k.class_school_id = '' OR {_HAS_ROLE} THEN {_NONE} "
        f"ELSE coalesce(u.guardian_orgs, {_NONE}) END",
    },
}

_MAKE_KEYS = """
    CREATE TEMPORARY TABLE keys_{table} ON COMMIT DROP AS
    SELECT made.*, sha256(convert_to(jsonb_build_array({all})::text, 'UTF8')) AS digest
    FROM (
        SELECT {keys}, {lists}{opens}
        FROM (SELECT DISTINCT {names} FROM keyed_{table}) k LEFT JOIN visibility_labels u ON u.id = {user}
    ) made
"""
_ADD_LABELS = """
    INSERT INTO visibility_labels (feed_id, digest, {all})
    SELECT DISTINCT CAST(:feed_id AS integer), digest, {all} FROM keys_{table}
    ON CONFLICT (feed_id, digest) DO NOTHING
"""
_MAKE_FOUND = """
    CREATE TEMPORARY TABLE labels_of_{table} ON COMMIT DROP AS
    SELECT r.sourced_id, label.id AS label_id{columns}
    FROM keyed_{table} r JOIN keys_{table} k ON {joined}
    JOIN visibility_labels label ON label.feed_id = :feed_id AND label.digest = k.digest
"""
_DIFFERS = """
    SELECT EXISTS (
        SELECT FROM {table} t JOIN {found} n USING (sourced_id) WHERE t.label_id IS DISTINCT FROM n.label_id
    )
"""
_DEPART = """
    INSERT INTO departures AS known (type, sourced_id, label_id, feed_id, person_id, departed_at)
    SELECT :type, t.sourced_id, t.label_id, t.feed_id, {person},
        CASE WHEN t.status = 'active' THEN :stamp ELSE t.date_last_modified END
    FROM {table} t JOIN {found} n USING (sourced_id) JOIN visibility_labels former ON former.id = t.label_id
    WHERE t.label_id IS DISTINCT FROM n.label_id
        AND former.any_orgs || former.guardian_orgs || former.listed_orgs <> '{{}}'
    ON CONFLICT (type, sourced_id, label_id, group_id, org_id, role, vendor_id)
    DO UPDATE SET departed_at = excluded.departed_at
"""
_MOVE = """
    WITH moved AS (
        UPDATE {table} t SET {columns}, date_last_modified = CASE
            WHEN t.status = 'active' AND t.label_id IS NOT NULL THEN :stamp
            ELSE t.date_last_modified
        END
        FROM {found} n WHERE n.sourced_id = t.sourced_id AND t.label_id IS DISTINCT FROM n.label_id
        RETURNING t.sourced_id
    )
    INSERT INTO {moved} SELECT sourced_id FROM moved
"""
