"""The names by which people know records, of the roster and of rows that are not in it yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from roster_service.db import tables
from roster_service.db.tables import CText, CTexts

# The columns whose texts, with a blank between them, are the label of a record.
LABEL_COLUMNS: Mapping[sa.Table, tuple[str, ...]] = {
    tables.orgs: ("name",),
    tables.academic_sessions: ("title",),
    tables.courses: ("title",),
    tables.classes: ("title",),
    tables.users: ("given_name", "family_name"),
    tables.enrollments: ("role",),
    tables.demographics: ("sourced_id",),
}
# Rows beside those of the roster, with the columns of their tables: those that a run would add.
Added = Mapping[sa.Table, sa.FromClause]


def make_label(table: sa.Table, source: sa.FromClause) -> sa.ColumnElement[str]:
    """Returns the label of the rows of `source`, which has the columns of `table`."""
    first, *others = (source.c[name] for name in LABEL_COLUMNS[table])
    label: sa.ColumnElement[str] = first
    for column in others:
        label = label + sa.literal(" ", CText) + column
    return label


def read_names(connection: sa.Connection, table: sa.Table, ids: Iterable[str], added: Added) -> dict[str, str]:
    """Returns the names of records of a table, also of deleted ones: their labels; for an enrollment its role, person
    and class, for demographics the name of the person. `added`: rows beside those of the roster."""
    wanted = sorted(set(ids))
    if not wanted:
        return {}
    if table is tables.demographics:
        return read_names(connection, tables.users, wanted, added)
    if table is not tables.enrollments:
        rows = _read(connection, table, wanted, added, lambda source: [make_label(table, source).label("label")])
        return {row.sourced_id: row.label for row in rows}
    columns = ("role", "user_id", "class_id")
    found = list(_read(connection, table, wanted, added, lambda source: [source.c[name] for name in columns]))
    people = read_names(connection, tables.users, (row.user_id for row in found), added)
    titles = read_names(connection, tables.classes, (row.class_id for row in found), added)
    return {
        row.sourced_id: (
            f"{row.role}: {people.get(row.user_id, row.user_id)} in {titles.get(row.class_id, row.class_id)}"
        )
        for row in found
    }


def _read(
    connection: sa.Connection,
    table: sa.Table,
    ids: list[str],
    added: Added,
    columns: Callable[[sa.FromClause], Sequence[sa.ColumnElement[Any]]],
) -> Iterator[sa.Row[Any]]:
    """(sourced_id, the columns) of the rows with these ids, those of the roster last."""
    for source in (added.get(table), table):
        if source is not None:
            wanted = source.c.sourced_id == sa.func.any(sa.literal(ids, CTexts))
            yield from connection.execute(sa.select(source.c.sourced_id, *columns(source)).where(wanted))
