"""Reads whole collections, each in one statement, as pages have them: by the plan, with both layers of visibility.

All of them belong to one transaction with one snapshot. The rows come through a cursor of the server, so that neither
side holds a collection. `connection`: of an engine of `make_snapshot_engine`, as the serving role.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from roster_service.db.prepared_statements import fetch_rows
from roster_service.db.round_trip import Call
from roster_service.feeds.roster_state import RosterState
from roster_service.roster.visibility import select_whole_districts
from roster_service.serving import statements
from roster_service.serving.plan import Plan
from roster_service.serving.read_statements import STATE_STATEMENT
from roster_service.serving.reader import read_state

# The rows of one round trip.
FETCHED_ROWS = 2000


def admit(connection: sa.Connection, admission: Call, vendor_id: int) -> RosterState:
    """Admits the caller for the transaction of the connection. Raises as `Reader.admit`."""
    fetch_rows(connection, admission.statement, admission.values)
    return read_state(connection.execute(STATE_STATEMENT, {"vendor_id": vendor_id}).one())


def select_records(
    connection: sa.Connection, plan: Plan, vendor_id: int, *columns: sa.ColumnElement[Any], base_url: str = ""
) -> sa.Select[Any]:
    """Returns the SELECT of columns of each record that the plan selects, ordered by id; no departures. The transaction
    has admitted the caller. `base_url`: of the hrefs, as the inside of a JSON string."""
    bound = {"vendor_id": vendor_id, "base_url": base_url}
    sees_districts = bool(connection.scalar(sa.select(select_whole_districts().exists()), bound))
    driver = statements.choose_driver(plan, sees_districts=sees_districts)
    conditions = statements.make_collection_condition(plan.shape, driver), statements.make_filter_condition(plan)
    rows = sa.select(*columns).select_from(plan.shape.view.record.table).where(*conditions)
    return rows.order_by(statements.get_key_column(plan.shape)).params(bound)


def stream_rows(connection: sa.Connection, rows: sa.Select[Any]) -> Iterator[Sequence[Any]]:
    """Yields the rows of a SELECT."""
    with connection.execute(rows, execution_options={"yield_per": FETCHED_ROWS}) as found:
        for rows_of_one_trip in found.partitions():
            yield from rows_of_one_trip
