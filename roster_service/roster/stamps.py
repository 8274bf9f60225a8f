"""The stamps of changes of the roster."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from roster_service.db.tables import Stamp

NOW = sa.func.date_trunc("milliseconds", sa.func.clock_timestamp())


def make_next_stamp(connection: sa.Connection) -> datetime:
    """Returns a stamp for changes: now, but always later than all announced stamps, even if the clock went back. The
    transaction holds the lock of the sync alone, or stores the stamp in the row of a run (`take_stamp` of
    sync_scripts/engine/run_record.py)."""
    stamp: datetime = connection.execute(sa.select(sa.func.next_stamp(type_=Stamp))).scalar_one()
    return stamp
