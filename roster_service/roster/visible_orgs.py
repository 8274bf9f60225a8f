"""Updates the tables `visible_orgs`, `visible_labels` and `visible_feeds`: after every change of grants, and in every
sync."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa

from roster_service.db.tables import CTexts, orgs, vendor_grants, vendors, visible_orgs


def refresh_visible_orgs(connection: sa.Connection, *vendor_ids: int, new_orgs: Collection[str] = ()) -> None:
    """Updates the rows of these vendors from their grants and from the orgs, as this transaction sees them. `new_orgs`:
    the ids of the orgs that the transaction has added; they move no floor.

    A second transaction that updates the rows of the same vendor waits until this one ends, so that no row outlives its
    grant. `connection`: as the owner of the tables.
    """
    for vendor_id in sorted(vendor_ids):
        connection.execute(sa.select(sa.func.refresh_visible_orgs(vendor_id, sa.literal([*new_orgs], CTexts))))
    _analyze(connection)


def refresh_vendors_of(connection: sa.Connection, feed_ids: Collection[int], new_orgs: Collection[str] = ()) -> None:
    """Updates the rows of the vendors that see, or saw, an org of these feeds. `new_orgs`: as above. Call it as
    the last step of a transaction, because changes of grants wait for its end."""
    saw = sa.select(visible_orgs.c.vendor_id).where(visible_orgs.c.feed_id.in_(feed_ids))
    opened = sa.or_(
        orgs.c.sourced_id == vendor_grants.c.school_id,
        orgs.c.district_id == vendor_grants.c.district_id,
        orgs.c.sourced_id == vendor_grants.c.district_id,
    )
    sees = sa.select(vendor_grants.c.vendor_id).join(orgs, opened).where(orgs.c.feed_id.in_(feed_ids))
    found = sa.select(vendors.c.id).where(sa.or_(vendors.c.id.in_(saw), vendors.c.id.in_(sees)))
    refresh_visible_orgs(connection, *connection.scalars(found), new_orgs=new_orgs)


def _analyze(connection: sa.Connection) -> None:
    # Without statistics, PostgreSQL does not know how few orgs a vendor sees, and plans that need few rows begin with
    # all visible ones. SKIP_LOCKED, because another transaction that has analyzed the table keeps its lock until it
    # ends, and may wait for a vendor of this transaction.
    connection.execute(sa.text("ANALYZE (SKIP_LOCKED) visible_orgs, visible_labels"))
