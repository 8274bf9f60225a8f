"""Prepared statements find what the plain ones find, whatever stands in them."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.exc import DataError

from roster_service.db import prepared_statements
from roster_service.db.prepared_statements import allow_preparing, fetch_rows

ROWS = sa.values(sa.column("name", sa.Text), sa.column("number", sa.Integer), name="row").data(
    [("a", 1), ("b", 2), ("50 %", 3), ("it's", 4), ("back\\slash", 5), ("é", 6), (":c $1 %(d)s", 7)]
)

STATEMENTS = [
    pytest.param(sa.select(ROWS.c.name).where(ROWS.c.number == sa.bindparam("n")), {"n": 2}, id="a-bound-number"),
    pytest.param(sa.select(ROWS.c.name).where(ROWS.c.name == sa.bindparam("t")), {"t": "it's"}, id="a-bound-text"),
    pytest.param(sa.select(ROWS.c.name).where(ROWS.c.name == sa.bindparam("t")), {"t": "50 %"}, id="a-percent"),
    pytest.param(
        sa.select(ROWS.c.number).where(ROWS.c.name == sa.func.any(sa.bindparam("l", type_=ARRAY(sa.Text)))),
        {"l": ["a", "é", "back\\slash"]},
        id="a-bound-list",
    ),
    pytest.param(
        sa.select(ROWS.c.number).where(ROWS.c.name == sa.func.any(sa.bindparam("l", type_=ARRAY(sa.Text)))),
        {"l": []},
        id="an-empty-list",
    ),
    pytest.param(sa.select(ROWS.c.number).where(ROWS.c.name.in_(["a", "it's", "50 %"])), {}, id="a-spelled-list"),
    pytest.param(sa.select(ROWS.c.number).where(ROWS.c.name.like("5% \\%")), {}, id="a-spelled-pattern"),
    pytest.param(sa.select(ROWS.c.number % 2, sa.literal("back\\slash"), sa.literal("é")), {}, id="spelled-texts"),
    pytest.param(
        sa.select(sa.literal(":c $1"), sa.bindparam("t", type_=sa.Text)).where(sa.bindparam("t", type_=sa.Text) == "x"),
        {"t": "x"},
        id="one-value-twice",
    ),
    pytest.param(sa.text("SELECT :a || 'b' AS joined, 7 % 4"), {"a": "c"}, id="a-text"),
]


@pytest.mark.parametrize(("statement", "given"), STATEMENTS)
def test_the_rows_are_those_of_the_plain_statement(engine: sa.Engine, statement: Any, given: dict[str, Any]) -> None:
    with allow_preparing(engine, True).connect() as connection:
        plain = connection.execute(statement, given).all()
        for _ in range(7):
            assert fetch_rows(connection, statement, given | {"unasked": 1}) == plain


@pytest.mark.shows("Visibility", "The values of filters, paths and bodies are bound parameters of SQL.")
def test_a_value_is_bound_and_never_pasted(engine: sa.Engine) -> None:
    statement = sa.select(ROWS.c.number).where(ROWS.c.name == sa.bindparam("t"))
    assert prepared_statements.prepare(statement).text.endswith("= $1")
    with allow_preparing(engine, True).connect() as connection:
        assert fetch_rows(connection, statement, {"t": "' OR true --"}) == []


def test_a_missing_value_is_an_error(engine: sa.Engine) -> None:
    with allow_preparing(engine, True).connect() as connection, pytest.raises(KeyError):
        fetch_rows(connection, sa.select(ROWS.c.name).where(ROWS.c.number == sa.bindparam("n")), {})


def test_plans_outlive_a_transaction_and_are_bounded(engine: sa.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared_statements, "KEPT_PLANS", 3)
    statements = [sa.select(sa.literal(number), sa.bindparam("t", type_=sa.Text)) for number in range(5)]
    kept = sa.text("SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'roster_%'")
    with allow_preparing(engine, True).connect() as connection:
        for _ in range(2):
            for number, statement in enumerate(statements):
                assert fetch_rows(connection, statement, {"t": "x"}) == [(number, "x")]
                connection.rollback()
        assert connection.execute(kept).scalar_one() == 3


def test_errors_are_those_of_the_plain_statement(engine: sa.Engine) -> None:
    statement = sa.text("SELECT 1 / CAST(:n AS integer)")
    with allow_preparing(engine, True).connect() as connection:
        with pytest.raises(DataError):
            fetch_rows(connection, statement, {"n": 0})
        connection.rollback()
        assert fetch_rows(connection, statement, {"n": 1}) == [(1,)]


def test_two_statements_of_one_text_share_a_name(engine: sa.Engine) -> None:
    one, other, third = (sa.text(words) for words in ("SELECT :a + 1", "SELECT :a + 1", "SELECT :a + 2"))
    assert (
        prepared_statements.prepare(one).name
        == prepared_statements.prepare(other).name
        != prepared_statements.prepare(third).name
    )


def test_nothing_is_prepared_where_it_is_not_wanted(engine: sa.Engine) -> None:
    statement = sa.select(ROWS.c.name).where(ROWS.c.number == sa.bindparam("n"))
    for where in (engine, allow_preparing(engine, False)):
        with where.connect() as connection:
            assert fetch_rows(connection, statement, {"n": 2, "unasked": 1}) == [("b",)]
            assert connection.execute(sa.text("SELECT count(*) FROM pg_prepared_statements")).scalar_one() == 0
