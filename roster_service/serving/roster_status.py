"""What the last run of each visible feed was, so that a consumer can tell a night without changes from one that failed.

It says nothing of what a run found: the counts of a district are no affair of a vendor that sees one of its schools.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any

import sqlalchemy as sa

from roster_service.db.instants import find_today, format_instant
from roster_service.db.prepared_statements import fetch_rows
from roster_service.db.round_trip import Call
from roster_service.db.tables import WHOLE, feeds, sync_runs, visible_feeds
from roster_service.feeds.feed_states import FeedState, make_pause
from roster_service.feeds.roster_state import RosterState
from roster_service.feeds.run_outcomes import OUTCOMES
from roster_service.feeds.sync_lock import INTERRUPTED, RUNNING, find_interrupted
from roster_service.serving.read_statements import STATE_STATEMENT
from roster_service.serving.reader import read_state

# A nightly run may begin some hours later than that of the night before.
_MISSING = timedelta(hours=30)


@dataclass(frozen=True)
class RosterStatusReader:
    """Reads the states. `serving`: reads the roster; `counting`: reads the health of feeds; `zone`: of the district."""

    serving: sa.Engine
    counting: sa.Engine
    zone: tzinfo | None

    def read(self, admission: Call, vendor_id: int, state: RosterState) -> dict[str, Any]:
        """Returns the body of `/status` for a caller whom `admission` admits, and who sees the roster in `state`.
        Raises as `Reader.admit`."""
        seen = sa.select(visible_feeds.c.feed_id, visible_feeds.c.revision).where(
            visible_feeds.c.vendor_id == vendor_id, visible_feeds.c.feed_id != WHOLE
        )
        with self.serving.connect() as connection:
            fetch_rows(connection, admission.statement, admission.values)
            revisions = {row.feed_id: row.revision for row in connection.execute(seen)}
            # Afterwards, because the rights may have changed right before: no feed is visible then.
            read_state(connection.execute(STATE_STATEMENT, {"vendor_id": vendor_id}).one())
        run = sync_runs.alias()
        last = (
            sa.select(run.c.id).where(run.c.feed_id == feeds.c.id).order_by(run.c.id.desc()).limit(1).scalar_subquery()
        )
        columns = (feeds.c.id, feeds.c.name, feeds.c.state, feeds.c.enabled, feeds.c.pause_from, feeds.c.pause_until)
        rows = (
            sa.select(*columns, sync_runs.c.id.label("run"), sync_runs.c.outcome, sync_runs.c.started_at)
            .outerjoin_from(feeds, sync_runs, sync_runs.c.id == last)
            .where(feeds.c.id.in_(revisions))
            .order_by(feeds.c.name)
        )
        today = find_today(self.zone)
        with self.counting.connect() as connection:
            interrupted = find_interrupted(connection)
            found = connection.execute(rows).all()
        described = [_describe(row, revisions[row.id], today, row.run in interrupted) for row in found]
        return {"revision": state.revision, "feeds": described}


def _describe(row: Any, revision: int, today: date, seems_dead: bool) -> dict[str, Any]:
    ran = {} if row.started_at is None else {"ranAt": format_instant(row.started_at)}
    state = _find_state(row, INTERRUPTED if row.outcome == RUNNING and seems_dead else row.outcome, today)
    return {"name": row.name, "state": state, **ran, "revision": revision}


def _find_state(row: Any, outcome: str, today: date) -> str:
    if row.state == FeedState.REMOVED:
        return "removed"
    pause = make_pause(row.pause_from, row.pause_until, None)
    if not row.enabled or (pause is not None and pause.covers(today)):
        return "paused"
    if row.started_at is None or row.started_at < datetime.now(UTC) - _MISSING:
        return "missing"
    return OUTCOMES[outcome].state
