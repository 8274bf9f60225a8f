"""Prepared statements behind both interfaces: the same answers, none of them wider than the transaction may see."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.db.prepared_statements import fetch_rows, prepare
from roster_service.db.roles import DatabaseRole
from roster_service.db.round_trip import Call
from roster_service.db.tables import users
from tests.extent import examples

from .client import GUARDIANS, ROOTS, SCOPES
from .conftest import Served
from .test_row_level_security import admit, find_admission, make_role_engine

COUNT = sa.select(sa.func.count()).select_from(users)
# PostgreSQL plans a prepared statement for its values five times before it tries a plan for all.
TIMES = 8
# Each round asks as every vendor: the first ones with a plan for the values, the last one with one for all, if any.
ROUNDS = examples(2, 2, TIMES)
PATHS = (
    "/users?limit=2",
    "/users?limit=2&offset=2",
    "/users?limit=3&offset=1&sort=dateLastModified&orderBy=desc",
    "/users?limit=3&offset=1&sort=metadata.it's%25",
    "/users?limit=2&offset=1&filter=status%3D'active'",
    "/schools/spr-elementary/students?limit=2&offset=1",
    "/users/spr-student-1",
    "/users/shv-student-1",
    "/classes/spr-class-math3-a",
)


@pytest.fixture
def session(served: Served) -> Iterator[sa.Engine]:
    """One session of the serving role whose statements are prepared."""
    engine = make_role_engine(served, DatabaseRole.SERVING)
    yield engine
    engine.dispose()


def count(connection: sa.Connection) -> int:
    """How many users a transaction sees."""
    (row,) = fetch_rows(connection, COUNT, {})
    return int(row[0])


def is_prepared(connection: sa.Connection) -> bool:
    """Whether the session has the statement's plan."""
    found = sa.text("SELECT count(*) FROM pg_prepared_statements WHERE name = :name")
    return bool(connection.scalar(found, {"name": prepare(COUNT).name}))


def test_a_statement_that_was_prepared_sees_what_each_transaction_may(served: Served, session: sa.Engine) -> None:
    expected = {}
    for vendor in ("springfield", "north"):
        with session.connect() as connection:
            assert admit(connection, find_admission(served, vendor))
            expected[vendor] = connection.scalar(COUNT)
    assert len({0, *expected.values()}) == 3
    for _ in range(TIMES):
        for vendor, number in expected.items():
            with session.connect() as connection:
                assert admit(connection, find_admission(served, vendor))
                assert count(connection) == number
            with session.connect() as connection:
                # The first statement of its transaction.
                assert count(connection) == 0
                assert is_prepared(connection)


def ask(served: Served, path: str, vendor: str, scopes: tuple[str, ...]) -> tuple[int, Any, bytes]:
    """The status, the count and the body of an answer."""
    headers = {"Authorization": f"Bearer {served.client.token('v1p1', scopes, vendor)}"}
    answer = served.app.test_client().get(ROOTS["v1p1"] + path, headers=headers)
    return answer.status_code, answer.headers.get("X-Total-Count"), answer.data


def forget_session(connection: Any, _record: object) -> None:
    """What a pooler may do between two transactions."""
    connection.rollback()
    with connection.cursor() as cursor:
        cursor.execute("DISCARD ALL")


def test_without_them_every_answer_is_the_same_on_sessions_that_forget(
    served: Served, make_served: Callable[..., Served]
) -> None:
    plain = make_served(served.url, prepared_statements=False)
    sa.event.listen(plain.app.extensions["roster_engine"].pool, "checkin", forget_session)
    own = tuple(scope for scope in SCOPES if scope != GUARDIANS)
    vendors = ("both", "springfield", "elementary", "north")
    for scopes, path in itertools.product((SCOPES, own), PATHS):
        expected = [ask(plain, path, vendor, scopes) for vendor in vendors]
        for _ in range(ROUNDS):
            assert [ask(served, path, vendor, scopes) for vendor in vendors] == expected
    kept = Call(sa.text("SELECT count(*) FROM pg_prepared_statements"), {})
    assert served.app.extensions["roster_round_trips"].fetch_last(kept)[0][0] > 1
    assert plain.app.extensions["roster_round_trips"].fetch_last(kept) == [(0,)]
