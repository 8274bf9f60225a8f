"""The orgs that the grants of vendors open, and the feeds that a grant names.

A later district may have the id of a former one and be another district, so no grant outlives the records of its
district.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, tzinfo
from functools import partial

import sqlalchemy as sa

from roster_service.change_log.actors import Actor
from roster_service.change_log.changes import State, Subject, Verb, recorded
from roster_service.db.instants import describe_purge
from roster_service.db.tables import (
    WHOLE,
    CTexts,
    agreements,
    orgs,
    roster_state,
    vendor_grants,
    vendors,
    visible_feeds,
    visible_orgs,
)


def refresh_visible_orgs(connection: sa.Connection, *vendor_ids: int, new_orgs: Collection[str] = ()) -> None:
    """Updates the rows of these vendors from their grants and from the orgs, as this transaction sees them. `new_orgs`:
    the ids of the orgs that the transaction has added; they move no floor.

    A second transaction that updates the rows of the same vendor waits until this one ends, so that no row outlives its
    grant. `connection`: as the owner of the tables.
    """
    for vendor_id in sorted(vendor_ids):
        connection.execute(sa.select(sa.func.refresh_visible_orgs(vendor_id, sa.literal([*new_orgs], CTexts))))
    _analyze(connection)


def advance_view(connection: sa.Connection, vendor_id: int) -> None:
    """Gives what a vendor sees the present revision of the roster, although its orgs are the same."""
    whole = (visible_feeds.c.vendor_id == vendor_id, visible_feeds.c.feed_id == WHOLE)
    present = sa.select(roster_state.c.revision).scalar_subquery()
    connection.execute(sa.update(visible_feeds).where(*whole).values(revision=present))


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


@dataclass(frozen=True)
class FeedGrant:
    """A vendor's grants of a district, or of schools of it. `deleted_at`: when the district was marked as deleted, or
    would be now."""

    vendor_id: int
    email: str
    district_id: str
    district: str
    deleted_at: datetime

    def describe_end(self, retention_days: int | None, zone: tzinfo | None) -> str:
        """Returns what ends, and when. `retention_days`: after which the purge deletes the district; None: it goes at
        once; `zone`: of the day that it names."""
        words = f"{self.email} may no longer see {self.district} ({self.district_id})"
        if retention_days is None:
            return words
        return f"{words} once the purge deletes it, {describe_purge(self.deleted_at, retention_days, zone)}"


def list_feed_grants(connection: sa.Connection, feed_id: int) -> list[FeedGrant]:
    """Lists the grants of the districts of a feed, by the address of the vendor."""
    deleted_at = sa.case((orgs.c.status == "tobedeleted", orgs.c.date_last_modified), else_=sa.func.now())
    columns = (vendors.c.id, vendors.c.email, orgs.c.sourced_id, orgs.c.name, deleted_at)
    found = (
        sa.select(*columns)
        .join(vendor_grants, vendor_grants.c.vendor_id == vendors.c.id)
        .join(orgs, orgs.c.sourced_id == vendor_grants.c.district_id)
        .where(orgs.c.feed_id == feed_id)
    )
    rows = connection.execute(found.distinct().order_by(vendors.c.email, orgs.c.sourced_id))
    return [FeedGrant(*row) for row in rows]


def end_grants(connection: sa.Connection, actor: Actor, grants: Collection[FeedGrant]) -> None:
    """Ends grants, and the tokens of their vendors, with a row of the change log for each."""
    for grant in grants:
        own = vendor_grants.c.vendor_id == grant.vendor_id
        read_state = partial(_read_grants, connection, grant.vendor_id)
        with recorded(connection, actor, Verb.VENDOR_REVOKE, Subject.of_vendor(grant.email), read_state):
            connection.execute(sa.delete(vendor_grants).where(own, vendor_grants.c.district_id == grant.district_id))
            renewed = {"grant_version": vendors.c.grant_version + 1, "visibility_key": sa.func.gen_random_uuid()}
            connection.execute(sa.update(vendors).where(vendors.c.id == grant.vendor_id).values(renewed))
            refresh_visible_orgs(connection, grant.vendor_id)


def forget_agreed(connection: sa.Connection, *org_ids: str) -> None:
    """Takes districts and schools out of all agreements: a later one with the same id is another one."""
    for column in (agreements.c.districts, agreements.c.schools):
        place = sa.func.unnest(column).column_valued("place")
        left = sa.func.array(sa.select(place).where(place.not_in(org_ids)).scalar_subquery(), type_=CTexts)
        named = column.overlap(sa.literal([*org_ids], CTexts))
        connection.execute(sa.update(agreements).where(named).values({column: left}))


def _read_grants(connection: sa.Connection, vendor_id: int) -> State:
    columns = (vendor_grants.c.district_id, vendor_grants.c.school_id)
    return {
        "grants": [
            list(row) for row in connection.execute(sa.select(*columns).where(vendor_grants.c.vendor_id == vendor_id))
        ]
    }
