"""The parent and the district of every org after a run.

An operator grants a vendor a district, or schools of one. Without a district no vendor could see any record of the
feed, so the feed gets one where its export has none. This district is a record of the feed like any other: it has the
same id in every run, and the sync marks it as deleted when an export has a district.

A school that names no parent lies below the only district. Where there are several, it stays where it was. One whose
parent is not there lies below none: whoever is granted another district does not get it, because a row is missing. A
stored org keeps the name of a parent that a delta ends, and lies below it again when it returns.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import sqlalchemy as sa

from roster_service.db.tables import CText, feeds, orgs
from sync_scripts.formats.conversion import DISTRICT, make_district
from sync_scripts.formats.model import HASH, StagedFile
from sync_scripts.formats.tolerated import NO_DISTRICT, NO_PARENT, Notice, Tolerated
from sync_scripts.staging.retained import ACTIVE, TO_BE_DELETED, Retention, is_live
from sync_scripts.staging.temporary import analyze_temporary, create_temporary, insert_rows

_SCHOOL = "school"


class Placement(enum.Enum):
    """Where orgs without a parent lie: below the district of the feed (ABOVE), schools below the only other one (ONE),
    or, of several, below the one that they had (SEVERAL)."""

    ABOVE = enum.auto()
    ONE = enum.auto()
    SEVERAL = enum.auto()


@dataclass(frozen=True)
class FeedDistrict:
    """The districts of a feed in a run, and the notices about them for the report. `placement`: None where there is no
    district."""

    feed_name: str
    placement: Placement | None = None
    notices: tuple[Notice, ...] = ()

    def set_parents(self, file: StagedFile, staged: StagedFile) -> StagedFile:
        """The orgs of `file` with the parents that they have after the run; a parent that is there stays. `staged`:
        those that have a row."""
        own, parent = make_district(self.feed_name)["sourcedId"], _find_parent(file)
        if self.placement is Placement.ABOVE:
            parent = sa.case((file["sourcedId"] != own, sa.func.coalesce(parent, own, type_=CText)))
        elif self.placement is not None:
            named = file["parentSourcedId"]
            # A stored org below the district of the feed may have named one that is gone.
            parent = sa.case(
                (_is_free(file, staged), _select_district(file, own, self.placement)),
                (named == own, sa.null()),
                (~is_live(file["sourcedId"], staged), named),
                else_=parent,
            )
        columns = (file["sourcedId"], file["type"], parent.label("parentSourcedId"))
        return StagedFile(file.file, sa.select(*columns).where(file.live).subquery(), ())


def _find_parent(file: StagedFile) -> sa.ColumnElement[str]:
    """The parent of a row, if it is among the orgs of `file`."""
    above = file.alias()
    return (
        sa.select(above["sourcedId"]).where(above["sourcedId"] == file["parentSourcedId"], above.live).scalar_subquery()
    )


def _is_free(file: StagedFile, staged: StagedFile) -> sa.ColumnElement[bool]:
    """The condition that a row of `file` is one of the export, and of a school that names no parent."""
    is_alone = sa.and_(file["type"] == _SCHOOL, file["parentSourcedId"].is_(None), file.live)
    return sa.and_(is_alone, is_live(file["sourcedId"], staged))


def _select_district(file: StagedFile, own: sa.ColumnElement[str], placement: Placement) -> sa.ColumnElement[str]:
    """The district, other than that of the feed, below which a school without a parent lies; NULL for none."""
    district, stored = file.alias(), orgs.alias()
    found = sa.select(district["sourcedId"]).where(district["type"] == DISTRICT, district["sourcedId"] != own)
    if placement is Placement.SEVERAL:
        is_own = (stored.c.sourced_id == file["sourcedId"], stored.c.status == ACTIVE)
        former = sa.select(stored.c.parent_id).where(*is_own).correlate(file.table)
        found = found.where(district["sourcedId"].in_(former))
    return found.where(district.live).scalar_subquery()


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
    parent = _find_parent(current)
    is_staged, districts, has_root = connection.execute(
        sa.select(
            sa.exists().where(staged["sourcedId"] == own, staged.live),
            sa.select(sa.func.count()).where(other, current["type"] == DISTRICT).scalar_subquery(),
            sa.exists().where(other, sa.or_(parent.is_(None), parent == own)),
        )
    ).one()
    stored = connection.execute(
        sa.select(orgs.c.feed_id, orgs.c.status, feeds.c.name)
        .join(feeds, feeds.c.id == orgs.c.feed_id)
        .where(orgs.c.sourced_id == own)
    ).one_or_none()
    is_stored = stored is not None and stored.feed_id == retention.feed_id and stored.status == ACTIVE
    in_delta = file.file.name in retention.deltas
    if is_staged or not (has_root or districts):
        return FeedDistrict(feed_name)
    if districts:
        notices: list[Notice] = []
        if is_stored:
            if in_delta:
                _insert_org(connection, file, {"sourcedId": own, "status": sa.literal(TO_BE_DELETED, CText)})
            words = f"{file.file.file_name} has a district now: the one that was made of the feed is marked as gone"
            notices.append(words)
        placement = Placement.ONE if districts == 1 else Placement.SEVERAL
        notices += _place_schools(connection, file, current, own, placement)
        return FeedDistrict(feed_name, placement, tuple(notices))
    if stored is not None and stored.feed_id != retention.feed_id:
        words = f"none can be made, because its id belongs to the feed {stored.name}"
        return FeedDistrict(feed_name, notices=(Tolerated(file.file.file_name, NO_DISTRICT, found=words),))
    if not (in_delta and is_stored):
        _insert_org(connection, file, cells)
    words = f"the feed itself is the district {feed_name}"
    return FeedDistrict(feed_name, Placement.ABOVE, (Tolerated(file.file.file_name, NO_DISTRICT, found=words),))


def _place_schools(
    connection: sa.Connection, file: StagedFile, current: StagedFile, own: sa.ColumnElement[str], placement: Placement
) -> list[Tolerated]:
    """The notice about the schools without a parent that lie below a district. The next run looks at their rows again,
    and says so again."""
    above = _select_district(current, own, placement)
    placed = sa.select(current["sourcedId"], above.label("district")).where(_is_free(current, file)).subquery()
    rows = connection.execute(sa.select(*placed.c).where(placed.c.district.is_not(None))).all()
    if not rows:
        return []
    table = cast(sa.Table, file.table)
    if HASH in table.c:
        again = sa.update(table).where(file["sourcedId"].in_([row.sourcedId for row in rows]))
        connection.execute(again.values({HASH: None}))
    found = ", ".join(sorted({row.district for row in rows}))
    return [Tolerated(file.file.file_name, NO_PARENT, "parentSourcedId", len(rows), f"below {found}")]


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
