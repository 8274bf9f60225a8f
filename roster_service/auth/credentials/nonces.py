"""The nonces of signed requests: a signed request counts once, on all workers and machines of a database.

They are in a table of their own, not among the throttle counters: the service refuses a replay while Redis is away
too, and after a crash of the database, which empties unlogged tables. If it cannot write the table, the request fails.
"""

from __future__ import annotations

import time

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert

from roster_service.db.tables import oauth1_nonces

# A request is accepted if its timestamp is so near to the clock of the service.
WINDOW_SECONDS = 300
# Twice the window, because the clocks of two machines differ: one must not forget a nonce that another would accept.
KEPT_SECONDS = 2 * WINDOW_SECONDS


def take_nonce(engine: sa.Engine, client_id: str, timestamp: int, nonce: str) -> bool:
    """Stores a nonce. Returns False if the client has used it before with this timestamp, in seconds since 1970.

    `engine`: of `make_counting_engine`. Raises SQLAlchemyError if the database cannot store it.
    """
    row = {"stamp": timestamp, "client_id": client_id, "nonce": nonce}
    with engine.connect() as connection:
        return connection.execute(insert(oauth1_nonces).values(row).on_conflict_do_nothing()).rowcount == 1


def delete_old_nonces(connection: sa.Connection) -> None:
    """Deletes the nonces of timestamps that no machine accepts any more."""
    connection.execute(sa.delete(oauth1_nonces).where(oauth1_nonces.c.stamp < time.time() - KEPT_SECONDS))
