"""Labels of records that a test has written itself, without a sync."""

from __future__ import annotations

import sqlalchemy as sa

from roster_service.db import tables
from roster_service.db.tables import LABELLED
from roster_service.roster.labels import find_labels, list_label_columns


def label_unlabelled(connection: sa.Connection) -> None:
    """Labels the records of all feeds that have no label yet, without stamps and departures."""
    for feed_id in connection.scalars(sa.select(tables.feeds.c.id).order_by(tables.feeds.c.id)).all():
        for table in LABELLED:
            rows = sa.select(table).where(table.c.label_id.is_(None), table.c.feed_id == feed_id).subquery("unlabelled")
            found = find_labels(connection, table, rows, feed_id)
            made = {name: found.c[name] for name in list_label_columns(table)}
            connection.execute(sa.update(table).where(table.c.sourced_id == found.c.sourced_id).values(made))
