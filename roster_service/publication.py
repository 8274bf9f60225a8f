"""What must be true of a new roster before it is served: a sync says it in the transaction that changes the roster.

This is what the sync knows of the service, beside its tables and settings.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Engine, update

from roster_service.cache.renditions import add_renditions, refresh_renditions
from roster_service.cache.warm_up import WarmUp, list_resource_views, make_orderings
from roster_service.db.engine import make_ordering_engine
from roster_service.db.roles import Role, make_role_urls
from roster_service.db.sync_lock import try_sync_lock
from roster_service.db.tables import roster_state
from roster_service.db.visible_orgs import refresh_all_visible_orgs, refresh_renderer
from roster_service.rostering.endpoints import list_listings
from roster_service.settings import Settings

LISTINGS = tuple(list_listings())


def publish(connection: Connection, rendered_megabytes: int, **state: Any) -> int:
    """Makes the roster that this transaction leaves the next revision: renders what changed, and writes anew which orgs
    the vendors see. Returns the revision.

    `rendered_megabytes`: what all renditions may take. `state`: what changes of roster_state.

    The last step of the transaction, because changes of grants wait for its end.
    """
    changed = update(roster_state).values(revision=roster_state.c.revision + 1, **state)
    revision: int = connection.execute(changed.returning(roster_state.c.revision)).scalar_one()
    views = list_resource_views(connection, LISTINGS)
    if views:
        refresh_renderer(connection)
    refresh_renditions(connection, views, rendered_megabytes * 10**6)
    refresh_all_visible_orgs(connection)
    return revision


def render_for_clients(connection: Connection, settings: Settings) -> bool:
    """Renders what registered clients can ask for and nobody could before. False while a sync is under way: a later one
    renders it, and until then the records are made live."""
    if not try_sync_lock(connection):
        return False
    refresh_renderer(connection)
    add_renditions(connection, list_resource_views(connection, LISTINGS), settings.rendition_megabytes * 10**6)
    return True


def warm_up(engine: Engine, settings: Settings) -> WarmUp:
    """Makes the orderings that clients will ask for first, for at most `warm_seconds`. `engine`: of the tables' owner.

    Raises DatabaseUnavailableError where the database has no roles that serve requests.
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
