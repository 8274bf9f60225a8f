"""What of the walks has to go: those of older rosters, and beyond the bounds those that were not used for longest."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, any_, bindparam, delete, func, or_, select
from sqlalchemy.types import ARRAY, LargeBinary

from roster_service.db.walk_tables import walk_chunks, walks

MOST_WALKS = 10_000
# Nobody else uses it: "walk", in ASCII.
_LOCK = 0x77616C6B


@dataclass(frozen=True)
class Bounds:
    """What all walks together may take."""

    most_bytes: int
    most_walks: int = MOST_WALKS

    @classmethod
    def of(cls, megabytes: int) -> Bounds:
        """The bounds of a service that was given so many megabytes."""
        return cls(megabytes * 10**6)


def evict(connection: Connection, revision: int, bounds: Bounds) -> int:
    """Removes the walks of rosters before `revision`, and what is beyond the bounds; returns how many went.

    The walk that was used last stays, however large it is. Nothing is done while another worker is at it.
    """
    if not connection.scalar(select(func.pg_try_advisory_xact_lock(_LOCK))):
        return 0
    latest = (walks.c.used_at.desc(), walks.c.key)
    ranked = select(
        walks.c.key,
        walks.c.revision,
        func.row_number().over(order_by=latest).label("place"),
        (func.sum(walks.c.bytes).over(order_by=latest) - walks.c.bytes).label("taken_before"),
    ).subquery("ranked")
    doomed = select(ranked.c.key).where(
        or_(
            ranked.c.revision < revision,
            ranked.c.place > bounds.most_walks,
            (ranked.c.place > 1) & (ranked.c.taken_before >= bounds.most_bytes),
        )
    )
    gone = list(connection.scalars(delete(walks).where(walks.c.key.in_(doomed)).returning(walks.c.key)))
    if gone:
        keys = bindparam("keys", gone, type_=ARRAY(LargeBinary))
        connection.execute(delete(walk_chunks).where(walk_chunks.c.walk == any_(keys)))
    return len(gone)
