"""Where the roster stands, and how an answer says so."""

from __future__ import annotations

import functools
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection, func, select, update

from roster_service.db import tables
from roster_service.db.sync_lock import try_sync_lock
from roster_service.errors import CommandError

# How far the revision of a restored roster moves on, at least and less than: further than syncs after the backup can
# have come, and by chance, so that two restores of one backup do not meet.
LEAST_STEP, STEPS_END = 2**20, 2**30
# The states whose headers a worker keeps: requests come while a sync commits.
KEPT_STATES = 8


@dataclass(frozen=True)
class RosterState:
    """Where the roster stands: its revision, its newest stamp, and the age past which tombstones may be gone."""

    revision: int
    as_of: datetime
    deletions_since: datetime


def read_state(connection: Connection) -> RosterState:
    """Where the roster stands, as the connection sees it. A request has this from its caller already."""
    state = tables.roster_state.c
    return RosterState(*connection.execute(select(state.revision, state.as_of, state.deletions_since)).one())


def advance_restored_state(connection: Connection) -> RosterState:
    """Moves a roster that was restored on, to where it never was; the new state.

    Whatever was derived from a former revision is then of another roster: entity tags, what workers remember, orderings
    and rendered records. Deltas do not go on from before, because a record that came after the backup was made may be
    in no later roster, not even as a tombstone. Raises CommandError while a sync is under way, which gives stamps.
    """
    if not try_sync_lock(connection):
        raise CommandError("a sync is under way; try again when it is done")
    state = tables.roster_state.c
    step = LEAST_STEP + secrets.randbelow(STEPS_END - LEAST_STEP)
    stamp = func.greatest(func.date_trunc("milliseconds", func.now()), state.as_of, type_=tables.Stamp)
    moved = update(tables.roster_state).values(revision=state.revision + step, as_of=stamp, deletions_since=stamp)
    found = moved.returning(state.revision, state.as_of, state.deletions_since)
    return RosterState(*connection.execute(found).one())


def format_instant(instant: datetime) -> str:
    """An instant as the wire shows it: UTC, with milliseconds."""
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@functools.lru_cache(KEPT_STATES)
def make_state_headers(state: RosterState) -> Mapping[str, str]:
    """Which roster an answer was made from, and what a consumer of deltas needs to know of it.

    As-Of is the instant for the next `dateLastModified>`: no later change can carry an older stamp. Deletions-Since
    is the age past which tombstones are gone, so that whoever pulled last before it must pull in full.
    """
    return {
        "X-Roster-Revision": str(state.revision),
        "X-Roster-As-Of": format_instant(state.as_of),
        "X-Roster-Deletions-Since": format_instant(state.deletions_since),
    }
