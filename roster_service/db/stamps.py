"""The stamps of changes of the roster."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, func, select, text

from roster_service.db.tables import Stamp, roster_state

NOW = func.date_trunc("milliseconds", func.clock_timestamp())


def make_next_stamp(connection: Connection) -> datetime:
    """Returns the stamp of the changes of a transaction that holds the lock of the sync: now, but always later than all
    earlier stamps, even if the clock went back."""
    later = roster_state.c.as_of + text("interval '1 millisecond'")
    stamp: datetime = connection.execute(select(func.greatest(NOW, later, type_=Stamp))).scalar_one()
    return stamp
