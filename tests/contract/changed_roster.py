"""What a sync changes, without a load: for tests of what follows from a change, and not of loads."""

from __future__ import annotations

import sqlalchemy as sa

from roster_service.db import tables
from roster_service.feeds.feed_states import list_feed_ids
from roster_service.feeds.roster_state import publish
from roster_service.roster.stamps import make_next_stamp

EVERYONE = sa.update(tables.users).where(tables.users.c.sourced_id.startswith("spr-"))


def change_roster(engine: sa.Engine, *changes: sa.Update) -> None:
    """Makes the changes, all with the next stamp, and publishes the roster. `EVERYONE`: the users of Springfield."""
    with engine.begin() as connection:
        stamp = make_next_stamp(connection)
        for change in changes:
            connection.execute(change.values(date_last_modified=stamp))
        publish(connection, list_feed_ids(connection), as_of=stamp)
