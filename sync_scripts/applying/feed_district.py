"""The district of a feed whose orgs have none: the feed itself, above the orgs that have no parent.

A vendor is granted a district, or schools of one; without a district nobody could be shown anything of the feed. It is
a record of the feed like any other: it has the same id every night, and is marked as gone when an export brings a
district.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from sqlalchemy import ColumnElement, Connection, Table, and_, case, exists, func, literal, or_, select

from roster_service.db.tables import CText, feeds, orgs
from sync_scripts.formats.ids import DISTRICT, make_district
from sync_scripts.formats.model import StagedFile
from sync_scripts.formats.tolerated import NO_DISTRICT, describe_deviation
from sync_scripts.staging.retained import ACTIVE, TO_BE_DELETED, Retention


class Placement(enum.Enum):
    """Where a run puts the district of the feed: above the orgs without a parent, away from there, or nowhere."""

    ABOVE = enum.auto()
    AWAY = enum.auto()
    NOWHERE = enum.auto()


@dataclass(frozen=True)
class FeedDistrict:
    """The district of a feed in a run, and what there is to say about it."""

    feed_name: str
    placement: Placement = Placement.NOWHERE
    notice: str | None = None

    def set_parents(self, file: StagedFile) -> StagedFile:
        """Orgs with the parents that they have after the run; a parent that the export names stays."""
        own, parent = make_district(self.feed_name)["sourcedId"], file["parentSourcedId"]
        parents: dict[Placement, ColumnElement[str]] = {
            Placement.ABOVE: case((file["sourcedId"] != own, func.coalesce(parent, own, type_=CText))),
            Placement.AWAY: func.nullif(parent, own, type_=CText),
            Placement.NOWHERE: parent,
        }
        columns = (file["sourcedId"], file["type"], parents[self.placement].label("parentSourcedId"))
        return StagedFile(file.file, select(*columns).where(file.live).subquery(), ())


def add_district(connection: Connection, feed_name: str, retention: Retention) -> FeedDistrict:
    """Adds the district of the feed to the staged orgs, which have passed their checks, where these need one.

    Beside a delta of orgs its record stands by itself, and is flagged there once an export brings a district. An id
    that the export itself has, or that is another feed's, is left alone.
    """
    file, cells = retention.staged["orgs"], make_district(feed_name)
    own = cells["sourcedId"]
    said, there = file.alias(), retention.include_retained(file).alias()
    other = and_(there.live, there["sourcedId"] != own)
    no_parent = or_(there["parentSourcedId"].is_(None), there["parentSourcedId"] == own)
    is_said, has_district, has_root = connection.execute(
        select(
            exists().where(said["sourcedId"] == own, said.live),
            exists().where(other, there["type"] == DISTRICT),
            exists().where(other, no_parent),
        )
    ).one()
    stored = connection.execute(
        select(orgs.c.feed_id, orgs.c.status, feeds.c.name)
        .join(feeds, feeds.c.id == orgs.c.feed_id)
        .where(orgs.c.sourced_id == own)
    ).one_or_none()
    is_stored = stored is not None and stored.feed_id == retention.feed_id and stored.status == ACTIVE
    in_delta = file.file.name in retention.deltas
    if is_said or not (has_root or has_district) or (has_district and not is_stored):
        return FeedDistrict(feed_name)
    if has_district:
        if in_delta:
            _insert_org(connection, file, {"sourcedId": own, "status": literal(TO_BE_DELETED, CText)})
        words = f"{file.file.file_name} has a district now: the one that was made of the feed is marked as gone"
        return FeedDistrict(feed_name, Placement.AWAY, words)
    if stored is not None and stored.feed_id != retention.feed_id:
        words = f"none can be made, because its id belongs to the feed {stored.name}"
        return FeedDistrict(feed_name, notice=describe_deviation(file.file.file_name, NO_DISTRICT, words))
    if not (in_delta and is_stored):
        _insert_org(connection, file, cells)
    words = f"the feed itself is the district {feed_name}"
    return FeedDistrict(feed_name, Placement.ABOVE, describe_deviation(file.file.file_name, NO_DISTRICT, words))


def _insert_org(connection: Connection, file: StagedFile, cells: Mapping[str, ColumnElement[str]]) -> None:
    connection.execute(cast(Table, file.table).insert().from_select(list(cells), select(*cells.values())))
