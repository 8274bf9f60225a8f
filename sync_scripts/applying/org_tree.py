"""The parent and the district of every org after a run.

An operator grants a vendor a district, or schools of one. Without a district no vendor could see any record of the
feed, so the feed gets one where its export has none. This district is a record of the feed like any other: it has the
same id in every run, and the sync marks it as deleted when an export has a district.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import sqlalchemy as sa

from roster_service.db.tables import CText, feeds, orgs
from sync_scripts.formats.conversion import DISTRICT, make_district
from sync_scripts.formats.model import StagedFile
from sync_scripts.formats.tolerated import NO_DISTRICT, Notice, Tolerated
from sync_scripts.staging.retained import ACTIVE, TO_BE_DELETED, Retention
from sync_scripts.staging.temporary import analyze_temporary, create_temporary, insert_rows


class Placement(enum.Enum):
    """The effect of a run on the district of the feed: it is the parent of orgs without one (ABOVE), it no longer is
    (AWAY), or the run does not touch it (NOWHERE)."""

    ABOVE = enum.auto()
    AWAY = enum.auto()
    NOWHERE = enum.auto()


@dataclass(frozen=True)
class FeedDistrict:
    """The district of a feed in a run, and the notice about it for the report."""

    feed_name: str
    placement: Placement = Placement.NOWHERE
    notice: Notice | None = None

    def set_parents(self, file: StagedFile) -> StagedFile:
        """The orgs of `file` with the parents that they have after the run; a parent that the export names stays."""
        own, parent = make_district(self.feed_name)["sourcedId"], file["parentSourcedId"]
        parents: dict[Placement, sa.ColumnElement[str]] = {
            Placement.ABOVE: sa.case((file["sourcedId"] != own, sa.func.coalesce(parent, own, type_=CText))),
            Placement.AWAY: sa.func.nullif(parent, own, type_=CText),
            Placement.NOWHERE: parent,
        }
        columns = (file["sourcedId"], file["type"], parents[self.placement].label("parentSourcedId"))
        return StagedFile(file.file, sa.select(*columns).where(file.live).subquery(), ())


def add_district(connection: sa.Connection, feed_name: str, retention: Retention) -> FeedDistrict:
    """Adds the district of the feed to the staged orgs, after their checks, if the orgs need one.

    With a delta of orgs, its stored record is retained, and a row of the delta marks it as deleted once an export has a
    district. The run does not add the district if the export has an org with this id, or if the id belongs to another
    feed.
    """
    file, cells = retention.staged["orgs"], make_district(feed_name)
    own = cells["sourcedId"]
    staged, current = file.alias(), retention.include_retained(file).alias()
    other = sa.and_(current.live, current["sourcedId"] != own)
    no_parent = sa.or_(current["parentSourcedId"].is_(None), current["parentSourcedId"] == own)
    is_staged, has_district, has_root = connection.execute(
        sa.select(
            sa.exists().where(staged["sourcedId"] == own, staged.live),
            sa.exists().where(other, current["type"] == DISTRICT),
            sa.exists().where(other, no_parent),
        )
    ).one()
    stored = connection.execute(
        sa.select(orgs.c.feed_id, orgs.c.status, feeds.c.name)
        .join(feeds, feeds.c.id == orgs.c.feed_id)
        .where(orgs.c.sourced_id == own)
    ).one_or_none()
    is_stored = stored is not None and stored.feed_id == retention.feed_id and stored.status == ACTIVE
    in_delta = file.file.name in retention.deltas
    if is_staged or not (has_root or has_district) or (has_district and not is_stored):
        return FeedDistrict(feed_name)
    if has_district:
        if in_delta:
            _insert_org(connection, file, {"sourcedId": own, "status": sa.literal(TO_BE_DELETED, CText)})
        words = f"{file.file.file_name} has a district now: the one that was made of the feed is marked as gone"
        return FeedDistrict(feed_name, Placement.AWAY, words)
    if stored is not None and stored.feed_id != retention.feed_id:
        words = f"none can be made, because its id belongs to the feed {stored.name}"
        return FeedDistrict(feed_name, notice=Tolerated(file.file.file_name, NO_DISTRICT, found=words))
    if not (in_delta and is_stored):
        _insert_org(connection, file, cells)
    words = f"the feed itself is the district {feed_name}"
    return FeedDistrict(feed_name, Placement.ABOVE, Tolerated(file.file.file_name, NO_DISTRICT, found=words))


def _insert_org(connection: sa.Connection, file: StagedFile, cells: Mapping[str, sa.ColumnElement[str]]) -> None:
    connection.execute(cast(sa.Table, file.table).insert().from_select(list(cells), sa.select(*cells.values())))


def store_parents(connection: sa.Connection, orgs: StagedFile) -> sa.Table:
    """A temporary table of the parent of each org. `orgs`: the orgs after the run, with their parents."""
    columns = [sa.column("sourced_id", CText), sa.column("parent_id", CText)]
    table = create_temporary(connection, "desired_parents", columns, key="sourced_id")
    found = sa.select(orgs["sourcedId"].label("sourced_id"), orgs["parentSourcedId"].label("parent_id"))
    insert_rows(connection, table, found)
    analyze_temporary(connection, table)
    return table


def store_districts(connection: sa.Connection, orgs: StagedFile) -> sa.Table:
    """A temporary table of the nearest org of type district at or above each org, without orgs that have none.

    The checks have rejected rows that close a circle; UNION would end the recursion in one too."""
    columns = [sa.column("sourced_id", CText), sa.column("district_id", CText)]
    table = create_temporary(connection, "desired_districts", columns, key="sourced_id")
    start = sa.select(orgs["sourcedId"].label("sourced_id"), orgs["sourcedId"].label("reached")).where(orgs.live)
    chain = start.cte("chain", recursive=True)
    here = orgs.alias()
    # The recursion stops at a district, so each org reaches at most one.
    chain = chain.union(
        sa.select(chain.c.sourced_id, here["parentSourcedId"]).where(
            here["sourcedId"] == chain.c.reached, here["type"] != "district", here["parentSourcedId"].is_not(None)
        )
    )
    last = orgs.alias()
    found = sa.select(chain.c.sourced_id, chain.c.reached.label("district_id")).where(
        last["sourcedId"] == chain.c.reached, last["type"] == "district"
    )
    insert_rows(connection, table, found)
    analyze_temporary(connection, table)
    return table
