"""The steps that prepare a new roster for serving: a sync or a purge runs them in the transaction that changes the
roster.

Of the service, the sync imports this module, `db`, the settings and the errors, and nothing else.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import Connection, Engine

from roster_service.access.roster_state import advance_state
from roster_service.cache.renditions import add_renditions, refresh_renditions
from roster_service.cache.warm_up import WarmUp, list_resource_views, make_orderings
from roster_service.db.engine import make_ordering_engine
from roster_service.db.feed_states import list_feed_ids
from roster_service.db.roles import Role, make_role_urls
from roster_service.db.sync_lock import try_sync_lock
from roster_service.db.visible_orgs import refresh_renderer, refresh_vendors_of
from roster_service.rostering.endpoints import list_listings
from roster_service.settings import Settings

LISTINGS = tuple(list_listings())


def publish(
    connection: Connection,
    feed_ids: Collection[int],
    rendered_megabytes: int,
    *,
    new_orgs: Collection[str] = (),
    as_of: datetime | None = None,
    deletions_since: datetime | None = None,
) -> int:
    """Publishes the records of these feeds, as this transaction has changed them, as the next revision, and returns
    that revision: renders the changed records, and updates the visible orgs and the state of the vendors that see the
    feeds.

    `rendered_megabytes`: the bound on the size of all renditions. `new_orgs`: the ids of the orgs that the transaction
    has added: those that were there before move the floor of a vendor that sees other ones of them now. `as_of`,
    `deletions_since`: as for `advance_state`.

    Call it as the last step of the transaction, because other announcements and changes of grants wait for its end.
    """
    views = list_resource_views(connection, LISTINGS)
    if views:
        refresh_renderer(connection, feed_ids)
    refresh_renditions(connection, views, feed_ids, rendered_megabytes * 10**6, as_of)
    # The row of the state stays locked until the transaction ends, so the records are rendered before.
    revision = advance_state(connection, feed_ids, as_of, deletions_since)
    refresh_vendors_of(connection, feed_ids, new_orgs)
    return revision


def render_for_clients(connection: Connection, settings: Settings) -> bool:
    """Renders the records of all sets of content rights that registered clients have, as far as they are not rendered
    yet.

    Returns False, and renders nothing, while a sync is under way: a later sync renders them, and until then each
    request makes their texts itself.
    """
    if not try_sync_lock(connection, "renders records for clients"):
        return False
    refresh_renderer(connection, list_feed_ids(connection))
    add_renditions(connection, list_resource_views(connection, LISTINGS), settings.rendition_megabytes * 10**6)
    return True


def warm_up(engine: Engine, settings: Settings) -> WarmUp:
    """Makes the orderings of whole collections for every client, for at most `warm_seconds`. `engine`: of the tables'
    owner.

    Raises DatabaseUnavailableError if the database does not have the roles that serve requests.
    """
    with engine.connect() as connection:
        urls = make_role_urls(connection, settings.role_password)
    serving = make_ordering_engine(urls[Role.SERVING], statement_seconds=max(1, settings.warm_seconds))
    try:
        return make_orderings(
            engine,
            serving,
            LISTINGS,
            megabytes=settings.ordering_megabytes,
            seconds=settings.warm_seconds,
        )
    finally:
        serving.dispose()
