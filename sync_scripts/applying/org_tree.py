"""The parent and the district of every org after a run."""

from __future__ import annotations

import sqlalchemy as sa

from roster_service.db.tables import CText
from sync_scripts.formats.model import StagedFile
from sync_scripts.staging.temporary import analyze_temporary, create_temporary, insert_rows


def store_parents(connection: sa.Connection, orgs: StagedFile) -> sa.Table:
    """A temporary table of the parent of each org. `orgs`: the orgs after the run, with their parents."""
    columns = [sa.Column("sourced_id", CText, primary_key=True), sa.Column("parent_id", CText)]
    table = create_temporary(connection, "desired_parents", columns)
    found = sa.select(orgs["sourcedId"].label("sourced_id"), orgs["parentSourcedId"].label("parent_id"))
    insert_rows(connection, table, found)
    analyze_temporary(connection, table)
    return table


def store_districts(connection: sa.Connection, orgs: StagedFile) -> sa.Table:
    """A temporary table of the nearest org of type district at or above each org, without orgs that have none.

    The checks have rejected rows that close a circle; UNION would end the recursion in one too."""
    columns = [sa.Column("sourced_id", CText, primary_key=True), sa.Column("district_id", CText)]
    table = create_temporary(connection, "desired_districts", columns)
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
