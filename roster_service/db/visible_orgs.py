"""Which orgs each vendor sees, written anew as rows: by whatever changes grants, and by a sync that changes orgs."""

from __future__ import annotations

from sqlalchemy import Connection, func, select, text

from roster_service.db.tables import vendors
from roster_service.db.visibility import RENDERER


def refresh_visible_orgs(connection: Connection, *vendor_ids: int) -> None:
    """Writes the rows of these vendors anew, from their grants and the orgs as this transaction sees them.

    Another transaction that wants to do the same for one of them waits until this one ends, so that no row outlives the
    grant that it came from. The connection is one of the tables' owner.
    """
    for vendor_id in sorted(vendor_ids):
        connection.execute(select(func.refresh_visible_orgs(vendor_id)))
    # Without knowing how few orgs a vendor sees, plans for a few rows begin with all that it sees.
    # Another transaction that has done so keeps its lock until it ends, and may wait for a vendor of this one.
    connection.execute(text("ANALYZE (SKIP_LOCKED) visible_orgs"))


def refresh_renderer(connection: Connection) -> None:
    """Has the rows that records are rendered with open every org of the roster."""
    refresh_visible_orgs(connection, RENDERER)


def refresh_all_visible_orgs(connection: Connection) -> None:
    """Writes the rows of every vendor anew. The last step of a transaction: grants wait for its end."""
    refresh_visible_orgs(connection, *connection.scalars(select(vendors.c.id)))
