"""Where the roster stands, and how an answer says so."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import BigInteger, Connection, cast, func, select, update

from roster_service.db import tables


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


def leave_revisions(connection: Connection) -> int:
    """Takes the revision past every one that this roster has ever had, in any database; returns it.

    A restored database counts on from an older revision, and would give numbers a second time. Milliseconds since 1970
    are more than a roster that counts its syncs ever reaches, and more each time.
    """
    state = tables.roster_state.c
    now = cast(func.extract("epoch", func.clock_timestamp()) * 1000, BigInteger)
    left = update(tables.roster_state).values(revision=func.greatest(state.revision + 1, now))
    revision: int = connection.execute(left.returning(state.revision)).scalar_one()
    return revision


def show_instant(instant: datetime) -> str:
    """An instant as the wire shows it: UTC, with milliseconds."""
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def make_state_headers(state: RosterState) -> dict[str, str]:
    """Which roster an answer was made from, and what a consumer of deltas needs to know of it.

    As-Of is the instant for the next `dateLastModified>`: no later change can carry an older stamp. Deletions-Since
    is the age past which tombstones are gone, so that whoever pulled last before it must pull in full.
    """
    return {
        "X-Roster-Revision": str(state.revision),
        "X-Roster-As-Of": show_instant(state.as_of),
        "X-Roster-Deletions-Since": show_instant(state.deletions_since),
    }
