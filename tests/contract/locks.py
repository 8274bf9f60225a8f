"""Taking one of the two locks away: what a test does to see whether the other one holds by itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Connection, Engine, select, true

from roster_service.access.callers import AccessToken, Caller, find_caller
from roster_service.db import tables, visibility
from roster_service.db.engine import make_reading_engine
from roster_service.rostering import views
from tests.access_matrix.locks import forget_statements


@contextmanager
def first_lock_open(engine: Engine) -> Iterator[None]:
    """While it is open every row counts as visible, and every caller as granted each org, and guardians.

    `engine`: the owner's, to find every org with. The second lock is told the caller's own grants, as ever.
    """
    with engine.connect() as connection:
        every_org = tuple(connection.scalars(select(tables.orgs.c.sourced_id)))

    def find_mighty(connection: Connection, token: AccessToken) -> Caller:
        return dataclasses.replace(find_caller(connection, token), schools=every_org)

    with pytest.MonkeyPatch.context() as patch:
        for table in visibility._VISIBLE:
            patch.setitem(visibility._VISIBLE, table, lambda _row, _sight: true())  # type: ignore[arg-type]
        patch.setattr(views, "find_caller", find_mighty)
        sight = Caller.sight.fget  # type: ignore[attr-defined]
        patch.setattr(Caller, "sight", property(lambda caller: dataclasses.replace(sight(caller), guardians=True)))
        forget_statements()
        yield
    forget_statements()


def make_unlocked_engine(url: str, _role: str | None, statement_seconds: int, own_sessions: bool) -> Engine:
    """Stands in for `roster_service.app.make_serving_engine`: the tables' owner, whom no policy holds."""
    return make_reading_engine(
        url, role=None, statement_seconds=statement_seconds, pool_size=2, own_sessions=own_sessions
    )
