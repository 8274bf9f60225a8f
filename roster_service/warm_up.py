"""The last step of a night: makes the orderings that clients ask for first."""

from __future__ import annotations

import sqlalchemy as sa

from roster_service.db.engine import make_ordering_engine
from roster_service.db.roles import DatabaseRole, make_role_urls
from roster_service.rostering.endpoints import list_listings
from roster_service.serving.warm_up import WarmUp, make_orderings
from roster_service.settings import Settings

# The orderings of a client for a district of 191,000 students take a few seconds. What is not made by then is made by
# the first request for it.
WARM_SECONDS = 1800


def warm_up(engine: sa.Engine, settings: Settings) -> WarmUp:
    """Makes the orderings of whole collections for every client, for at most `WARM_SECONDS`. `engine`: of the tables'
    owner.

    Raises DatabaseUnavailableError if the database does not have the roles that serve requests.
    """
    with engine.connect() as connection:
        urls = make_role_urls(connection, settings.role_password)
    serving = make_ordering_engine(urls[DatabaseRole.SERVING], statement_seconds=WARM_SECONDS)
    try:
        return make_orderings(
            engine,
            serving,
            tuple(list_listings()),
            megabytes=settings.ordering_megabytes,
            seconds=WARM_SECONDS,
        )
    finally:
        serving.dispose()
