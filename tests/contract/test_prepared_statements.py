"""Prepared statements behind both doors: the same answers, none of them wider than the transaction may see."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event, func, select, text

from roster_service.db.engine import make_reading_engine
from roster_service.db.prepared import fetch_rows, prepare
from roster_service.db.serving_role import find_serving_role
from roster_service.db.tables import users
from roster_service.db.visibility import Sight, open_roster

from .client import GUARDIANS, ROOTS, SCOPES
from .conftest import Served

SIGHT = Sight(guardians=True, metadata=frozenset())
COUNT = select(func.count()).select_from(users)
# PostgreSQL plans a prepared statement for its values five times before it tries a plan for all.
TIMES = 8
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
def session(served: Served) -> Iterator[Engine]:
    """One session whose statements run in the serving role, and are prepared."""
    with served.engine.connect() as connection:
        role = find_serving_role(connection)
    engine = make_reading_engine(served.url, role=role, statement_seconds=5, pool_size=1, own_sessions=True)
    yield engine
    engine.dispose()


def count(connection: Connection) -> int:
    """How many users a transaction sees."""
    (row,) = fetch_rows(connection, COUNT, {})
    return int(row[0])


def is_prepared(connection: Connection) -> bool:
    """Whether the session has the statement's plan."""
    found = text("SELECT count(*) FROM pg_prepared_statements WHERE name = :name")
    return bool(connection.scalar(found, {"name": prepare(COUNT).name}))


def test_a_statement_that_was_prepared_sees_what_each_transaction_may(session: Engine) -> None:
    expected = {}
    for district in ("spr-district", "shv-district"):
        with session.connect() as connection:
            open_roster(connection, (district,), (), SIGHT)
            expected[district] = connection.scalar(COUNT)
    assert len({0, *expected.values()}) == 3
    for _ in range(TIMES):
        for district, number in expected.items():
            with session.connect() as connection:
                open_roster(connection, (district,), (), SIGHT)
                assert count(connection) == number
            with session.connect() as connection:
                # The first statement of its transaction.
                assert count(connection) == 0
                assert is_prepared(connection)


def test_a_statement_that_the_owner_prepared_is_planned_anew_for_the_serving_role(session: Engine) -> None:
    for _ in range(TIMES):
        with session.connect() as connection:
            connection.execute(text("SET LOCAL role = none"))
            assert count(connection) > 0
            connection.rollback()
            assert count(connection) == 0


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
    event.listen(plain.app.extensions["roster_engine"].pool, "checkin", forget_session)
    own = tuple(scope for scope in SCOPES if scope != GUARDIANS)
    for scopes in (SCOPES, own):
        for vendor in ("both", "springfield", "elementary", "north", "nobody"):
            for path in PATHS:
                expected = ask(plain, path, vendor, scopes)
                assert [ask(served, path, vendor, scopes) for _ in range(TIMES)] == [expected] * TIMES
    kept = text("SELECT count(*) FROM pg_prepared_statements")
    with served.app.extensions["roster_engine"].connect() as connection:
        assert connection.scalar(kept) > 0
