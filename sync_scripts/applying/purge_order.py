"""The order in which records are removed from the roster: a table comes after all tables that refer to it."""

from __future__ import annotations

import sqlalchemy as sa

from roster_service.db.tables import ROSTER_TABLES, departures, visibility_labels
from roster_service.roster.references import list_owners

PURGE_ORDER = ROSTER_TABLES[::-1]


def delete_from(connection: sa.Connection, table: sa.Table, condition: sa.ColumnElement[bool]) -> int:
    """Deletes the records of a table for which the condition holds, with their parts. Returns their number."""
    for owner in list_owners(table):
        connection.execute(sa.delete(owner.table).where(owner.in_(sa.select(table.c.sourced_id).where(condition))))
    return connection.execute(sa.delete(table).where(condition)).rowcount


def delete_records(connection: sa.Connection, feed_id: int) -> None:
    """Deletes all records of a feed with their parts, departures and labels. No record of another feed refers to
    them."""
    for table in PURGE_ORDER:
        delete_from(connection, table, table.c.feed_id == feed_id)
    for table in (departures, visibility_labels):
        connection.execute(sa.delete(table).where(table.c.feed_id == feed_id))
