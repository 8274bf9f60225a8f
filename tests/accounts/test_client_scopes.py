"""Other scopes make a client's copies wrong, and no delta mends them: its floor moves, and its consumers pull anew."""

from __future__ import annotations

from datetime import datetime

import pytest
import sqlalchemy as sa

from roster_service.accounts import clients, vendor_rights
from roster_service.auth.scopes import read_scopes
from roster_service.db import tables
from roster_service.feeds.sync_lock import RUNNING, hold_lock
from roster_service.roster.visible_orgs import refresh_visible_orgs
from tests.actors import TESTER
from tests.db.test_visible_orgs import email_of, prepare

CORE, ROSTER = "v1p2/roster-core.readonly", "v1p2/roster.readonly"
BEFORE = (CORE, ROSTER)


@pytest.fixture
def client_id(engine: sa.Engine) -> str:
    """A client of a vendor of one district; another vendor has one, too."""
    prepare(engine)
    with engine.begin() as connection:
        made = []
        for name in ("one", "two"):
            vendor_rights.grant(connection, TESTER, email_of(name), "d1", ())
            made.append(clients.add_client(connection, TESTER, email_of(name), "tests", read_scopes(BEFORE)).client_id)
    return made[0]


def read_floors(engine: sa.Engine) -> dict[str, tuple[datetime, datetime]]:
    """By client, its floor and its part in `X-Roster-As-Of`; by vendor, its floor and that of what it sees."""
    known, owner, seen = tables.oauth_clients.c, tables.vendors, tables.visible_feeds
    with engine.connect() as connection:
        own = connection.execute(sa.select(known.client_id, known.floor, known.as_of)).all()
        whole = sa.and_(seen.c.vendor_id == owner.c.id, seen.c.feed_id == tables.WHOLE)
        of_vendors = sa.select(owner.c.email, owner.c.floor, seen.c.floor).join(seen, whole)
        return {row[0]: (row[1], row[2]) for row in [*own, *connection.execute(of_vendors)]}


@pytest.mark.parametrize(
    ("scopes", "moves"),
    [
        pytest.param(BEFORE, False, id="the same"),
        pytest.param((ROSTER, CORE), False, id="the same in another order"),
        pytest.param((ROSTER, CORE, ROSTER), False, id="one of them twice"),
        pytest.param((CORE,), True, id="fewer"),
        pytest.param((*BEFORE, "v1p2/guardians.readonly"), True, id="more"),
        pytest.param((CORE, "v1p2/guardians.readonly"), True, id="others"),
    ],
)
def test_other_scopes_move_the_floor_of_the_client_alone(
    engine: sa.Engine, client_id: str, scopes: tuple[str, ...], moves: bool
) -> None:
    before = read_floors(engine)
    with engine.begin() as connection:
        clients.change_scopes(connection, TESTER, client_id, read_scopes(scopes))
    after = read_floors(engine)
    assert {name for name in after if after[name] != before[name]} == ({client_id} if moves else set())
    floor, as_of = after[client_id]
    assert (floor > before[client_id][0], as_of) == (moves, floor)


@pytest.mark.parametrize(
    ("feed", "waits"),
    [pytest.param("d1", True, id="that the vendor sees"), pytest.param("d2", False, id="that it does not see")],
)
def test_consumers_go_on_from_the_floor_once_no_older_run_is_under_way(
    engine: sa.Engine, client_id: str, feed: str, waits: bool
) -> None:
    """The run has taken its stamp and announced nothing yet."""
    before = read_floors(engine)[client_id]
    with engine.connect() as holder, hold_lock(holder, feed):
        with engine.begin() as connection:
            add_run(connection, feed)
            clients.change_scopes(connection, TESTER, client_id, read_scopes((CORE,)))
        floor, as_of = read_floors(engine)[client_id]
        assert (floor > before[0], as_of) == (True, before[1] if waits else floor)
    with engine.begin() as connection:
        refresh_visible_orgs(connection, 1)
    assert read_floors(engine)[client_id] == (floor, floor)


def add_run(connection: sa.Connection, feed: str) -> None:
    """Adds a run that is under way, as long as its lock is held."""
    feed_id = sa.select(tables.feeds.c.id).where(tables.feeds.c.name == feed).scalar_subquery()
    row = {"feed_id": feed_id, "format": "oneroster", "source": "", "started_at": sa.func.now(), "outcome": RUNNING}
    row |= {"stamp": sa.func.next_stamp(), "counts": {}, "seconds": {}}
    connection.execute(sa.insert(tables.sync_runs).values(row))
