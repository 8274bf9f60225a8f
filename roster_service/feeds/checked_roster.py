"""The roster that the checks of data quality look at: as it is stored, or as a run would leave it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from roster_service.db.tables import CText, classes, sync_rejections, sync_runs
from roster_service.feeds.run_history import TYPES
from roster_service.feeds.run_outcomes import LOADED_OUTCOMES

ACTIVE = "active"


class CheckedRoster(Protocol):
    """The roster, for the checks of one feed."""

    @property
    def feed_id(self) -> int:
        """The feed."""

    def own(self, table: sa.Table) -> sa.FromClause:
        """Returns the live records of the feed, with the columns of their table."""

    def live(self, table: sa.Table) -> sa.FromClause:
        """Returns the live records of all feeds, with the columns of their table."""

    def parts(self, table: sa.Table) -> sa.FromClause:
        """Returns the parts of the feed's records, with the columns of their table; perhaps also those of others."""

    def rejected_classes(self) -> sa.Select[Any]:
        """Selects the ids of the classes that rejected rows of the feed's last load name, without being theirs."""


@dataclass(frozen=True)
class StoredRoster:
    """The roster as it is stored."""

    feed_id: int

    def own(self, table: sa.Table) -> sa.FromClause:
        """As in `CheckedRoster`."""
        return sa.select(table).where(table.c.feed_id == self.feed_id, table.c.status == ACTIVE).subquery()

    def live(self, table: sa.Table) -> sa.FromClause:
        """As in `CheckedRoster`."""
        return sa.select(table).where(table.c.status == ACTIVE).subquery()

    def parts(self, table: sa.Table) -> sa.FromClause:
        """As in `CheckedRoster`."""
        return table.alias()

    def rejected_classes(self) -> sa.Select[Any]:
        """As in `CheckedRoster`."""
        loaded = (sync_runs.c.feed_id == self.feed_id, sync_runs.c.outcome.in_(LOADED_OUTCOMES))
        run = sa.select(sa.func.max(sync_runs.c.id)).where(*loaded).scalar_subquery()
        record = sa.func.jsonb_array_elements(sync_rejections.c.records, type_=JSONB).column_valued("record")
        named = sa.select(sa.type_coerce(record["sourcedId"].astext, CText)).select_from(sync_rejections)
        return named.where(
            sync_rejections.c.run_id == run, record["type"].astext == TYPES[classes.name], ~record["own"].as_boolean()
        )
