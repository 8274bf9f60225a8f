"""Figures of the roster for monitoring: the health of each feed, and what orderings take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from roster_service.db.tables import feeds, ordering_chunks, orderings, roster_state, sync_runs
from roster_service.feeds.feed_states import FeedState
from roster_service.feeds.run_outcomes import LOADED_OUTCOMES


@dataclass(frozen=True)
class FeedHealth:
    """An enabled feed. `age_seconds`: since its last good run ended, None before the first; `rejected_rows`: of its
    last run; `is_held`: whether a run waits for a decision."""

    name: str
    age_seconds: float | None
    rejected_rows: int
    is_held: bool


@dataclass(frozen=True)
class Figures:
    """The figures of one moment; sizes in bytes, with indexes."""

    feeds: Sequence[FeedHealth]
    ordering_bytes: int


def read_figures(connection: sa.Connection) -> Figures:
    """Reads the figures. `connection`: of the counting role."""
    of_feed = sa.select().select_from(sync_runs).where(sync_runs.c.feed_id == feeds.c.id)
    good = of_feed.with_only_columns(sa.func.max(sync_runs.c.finished_at)).where(
        sync_runs.c.outcome.in_(LOADED_OUTCOMES)
    )
    last = of_feed.with_only_columns(sync_runs.c.rejected).order_by(sync_runs.c.id.desc()).limit(1)
    rows = connection.execute(
        sa.select(
            feeds.c.name,
            sa.func.extract("epoch", sa.func.now() - good.scalar_subquery()).label("age"),
            sa.func.coalesce(last.scalar_subquery(), 0).label("rejected"),
            of_feed.with_only_columns(sa.literal(1)).where(sync_runs.c.outcome == "held").exists().label("held"),
        )
        .where(feeds.c.enabled, feeds.c.state != FeedState.REMOVED)
        .order_by(feeds.c.name)
    )
    health = [FeedHealth(row.name, None if row.age is None else float(row.age), row.rejected, row.held) for row in rows]
    return Figures(health, read_ordering_size(connection))


def read_ordering_size(connection: sa.Connection) -> int:
    """Returns the bytes that orderings take, with indexes."""
    return _read_size(connection, orderings, ordering_chunks)


def read_sync_channels(connection: sa.Connection) -> Sequence[str] | None:
    """Returns the channels over which the last nightly sync announces; None before the first."""
    found: Sequence[str] | None = connection.scalar(sa.select(roster_state.c.sync_channels))
    return found


def read_server(connection: sa.Connection) -> tuple[str, int]:
    """Returns the version of PostgreSQL, and the bytes that the database takes."""
    size = sa.func.pg_database_size(sa.func.current_database())
    version, found = connection.execute(sa.select(sa.func.current_setting("server_version"), size)).one()
    return version, found


def _read_size(connection: sa.Connection, *tables: sa.Table) -> int:
    return sum(int(connection.scalar(sa.select(sa.func.pg_total_relation_size(table.name))) or 0) for table in tables)
