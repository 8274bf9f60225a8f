"""Updates the table `visible_orgs`: after every change of grants, and in a sync that changes orgs."""

from __future__ import annotations

from sqlalchemy import Connection, func, select, text

from roster_service.db.tables import vendors
from roster_service.db.visibility import RENDERER


def refresh_visible_orgs(connection: Connection, *vendor_ids: int) -> None:
    """Updates the rows of these vendors from their grants and from the orgs, as this transaction sees them.

    A second transaction that updates the rows of the same vendor waits until this one ends, so that no row outlives its
    grant. `connection`: as the owner of the tables.
    """
    for vendor_id in sorted(vendor_ids):
        connection.execute(select(func.refresh_visible_orgs(vendor_id)))
    # Without statistics, PostgreSQL does not know how few orgs a vendor sees, and plans that need few rows begin with
    # all visible ones. SKIP_LOCKED, because another transaction that has analyzed the table keeps its lock until it
    # ends, and may wait for a vendor of this transaction.
    connection.execute(text("ANALYZE (SKIP_LOCKED) visible_orgs"))


def refresh_renderer(connection: Connection) -> None:
    """Updates the rows of vendor 0, with which records are rendered: they open every org of the roster."""
    refresh_visible_orgs(connection, RENDERER)


def refresh_all_visible_orgs(connection: Connection) -> None:
    """Updates the rows of all vendors. Call it as the last step of a transaction, because changes of grants wait for
    its end."""
    refresh_visible_orgs(connection, *connection.scalars(select(vendors.c.id)))
