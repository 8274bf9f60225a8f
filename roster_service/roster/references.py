"""The graph of references: which columns have the ids of other records, as the tables declare it (db/tables/roster.py).

The purge, the erasure of people, labels, the checks of data quality, the previews of runs, the formats of exports, the
stamps of students, and the references and facets of the console follow this graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from roster_service.db import tables
from roster_service.db.tables import PART_TABLES, ROSTER_TABLES, CText, CTexts


@dataclass(frozen=True)
class Reference:
    """A reference from record to record. `column`: of a record or of its parts, has the id, or a list of ids; `target`:
    the table of the record with this id; `own`: the column beside it with the id of the record that refers; `record`:
    the table of that record; `computed`: whether it follows from other references, and no export has it."""

    column: sa.Column[Any]
    target: sa.Table
    own: sa.Column[str]
    record: sa.Table
    computed: bool


# By table of parts: the column with the id of the record that has the part, and the table of these records.
OWNERS: Mapping[sa.Table, sa.Column[str]] = {
    table: column for table in PART_TABLES for column in table.c if "part_of" in column.info
}
RECORDS = {table: tables.metadata.tables[owner.info["part_of"]] for table, owner in OWNERS.items()}


def _list_references() -> Iterator[Reference]:
    for table in (*ROSTER_TABLES, *PART_TABLES):
        own = OWNERS[table] if table in OWNERS else table.c["sourced_id"]
        for column in table.c:
            if "refers" in column.info:
                target = tables.metadata.tables[column.info["refers"]]
                yield Reference(column, target, own, RECORDS.get(table, table), column.info["computed"])


REFERENCES: Mapping[sa.Column[Any], Reference] = {reference.column: reference for reference in _list_references()}


def list_references_to(target: sa.Table) -> list[Reference]:
    """Returns the references to the records of a table, without those that follow from others."""
    return [reference for reference in REFERENCES.values() if reference.target is target and not reference.computed]


def is_list(column: sa.ColumnElement[Any]) -> bool:
    """Whether a column has a list of ids."""
    return isinstance(column.type, sa.ARRAY)


def refers_to(column: sa.ColumnElement[Any], sourced_id: str | sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
    """The condition that a column names a record: that it has its id, or a list with it."""
    if not is_list(column):
        return column == sourced_id
    # With the operator of an index on lists: it finds the rows that name a record. Who has the list finds the records
    # by their ids.
    return column.contains(sa.cast(postgresql.array([sourced_id]), CTexts))


def list_items(column: sa.ColumnElement[Any]) -> sa.TableValuedAlias:
    """The ids of a list as rows with the columns `item` and `ordinality`, to be joined laterally with the row that has
    the list."""
    return sa.func.unnest(column).table_valued(sa.column("item", CText), with_ordinality="ordinality").render_derived()


# The column of a record with the id of the person whose record it is.
PERSONS: Mapping[sa.Table, sa.Column[str]] = {
    tables.users: tables.users.c.sourced_id,
    **{
        reference.record: reference.column
        for reference in list_references_to(tables.users)
        if reference.record is not tables.users
    },
}
# The tables whose records have the ids of people.
OF_PEOPLE = [table for table, person in PERSONS.items() if person is table.c.sourced_id]


def list_owners(record: sa.Table) -> list[sa.Column[str]]:
    """Returns the columns with the ids of the records of a table to which parts belong, one for each kind of part."""
    return [owner for table, owner in OWNERS.items() if RECORDS[table] is record]


def find_target(column: sa.Column[Any]) -> sa.Table | None:
    """Returns the table of the records whose ids a column has, other than as their key; None for any other column."""
    if column is OWNERS.get(column.table):
        return RECORDS[column.table]
    return REFERENCES[column].target if column in REFERENCES else None
