"""Prepared statements find what the plain ones find, whatever stands in them."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Engine, Integer, Text, bindparam, column, func, literal, select, text, values
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.exc import DataError

from roster_service.db import prepared_statements
from roster_service.db.prepared_statements import allow_preparing, fetch_rows

ROWS = values(column("name", Text), column("number", Integer), name="row").data(
    [("a", 1), ("b", 2), ("50 %", 3), ("it's", 4), ("back\\slash", 5), ("é", 6), (":c $1 %(d)s", 7)]
)

STATEMENTS = [
    pytest.param(select(ROWS.c.name).where(ROWS.c.number == bindparam("n")), {"n": 2}, id="a-bound-number"),
    pytest.param(select(ROWS.c.name).where(ROWS.c.name == bindparam("t")), {"t": "it's"}, id="a-bound-text"),
    pytest.param(select(ROWS.c.name).where(ROWS.c.name == bindparam("t")), {"t": "50 %"}, id="a-percent"),
    pytest.param(
        select(ROWS.c.number).where(ROWS.c.name == func.any(bindparam("l", type_=ARRAY(Text)))),
        {"l": ["a", "é", "back\\slash"]},
        id="a-bound-list",
    ),
    pytest.param(
        select(ROWS.c.number).where(ROWS.c.name == func.any(bindparam("l", type_=ARRAY(Text)))),
        {"l": []},
        id="an-empty-list",
    ),
    pytest.param(select(ROWS.c.number).where(ROWS.c.name.in_(["a", "it's", "50 %"])), {}, id="a-spelled-list"),
    pytest.param(select(ROWS.c.number).where(ROWS.c.name.like("5% \\%")), {}, id="a-spelled-pattern"),
    pytest.param(select(ROWS.c.number % 2, literal("back\\slash"), literal("é")), {}, id="spelled-texts"),
    pytest.param(
        select(literal(":c $1"), bindparam("t", type_=Text)).where(bindparam("t", type_=Text) == "x"),
        {"t": "x"},
        id="one-value-twice",
    ),
    pytest.param(text("SELECT :a || 'b' AS joined, 7 % 4"), {"a": "c"}, id="a-text"),
]


@pytest.mark.parametrize(("statement", "given"), STATEMENTS)
def test_the_rows_are_those_of_the_plain_statement(engine: Engine, statement: Any, given: dict[str, Any]) -> None:
    with allow_preparing(engine, True).connect() as connection:
        plain = connection.execute(statement, given).all()
        for _ in range(7):
            assert fetch_rows(connection, statement, given | {"unasked": 1}) == plain


def test_a_value_is_bound_and_never_pasted(engine: Engine) -> None:
    statement = select(ROWS.c.number).where(ROWS.c.name == bindparam("t"))
    assert prepared_statements.prepare(statement).text.endswith("= $1")
    with allow_preparing(engine, True).connect() as connection:
        assert fetch_rows(connection, statement, {"t": "' OR true --"}) == []


def test_a_missing_value_is_an_error(engine: Engine) -> None:
    with allow_preparing(engine, True).connect() as connection, pytest.raises(KeyError):
        fetch_rows(connection, select(ROWS.c.name).where(ROWS.c.number == bindparam("n")), {})


def test_plans_outlive_a_transaction_and_are_bounded(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared_statements, "KEPT_PLANS", 3)
    statements = [select(literal(number), bindparam("t", type_=Text)) for number in range(5)]
    kept = text("SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'roster_%'")
    with allow_preparing(engine, True).connect() as connection:
        for _ in range(2):
            for number, statement in enumerate(statements):
                assert fetch_rows(connection, statement, {"t": "x"}) == [(number, "x")]
                connection.rollback()
        assert connection.execute(kept).scalar_one() == 3


def test_errors_are_those_of_the_plain_statement(engine: Engine) -> None:
    statement = text("SELECT 1 / CAST(:n AS integer)")
    with allow_preparing(engine, True).connect() as connection:
        with pytest.raises(DataError):
            fetch_rows(connection, statement, {"n": 0})
        connection.rollback()
        assert fetch_rows(connection, statement, {"n": 1}) == [(1,)]


def test_two_statements_of_one_text_share_a_name(engine: Engine) -> None:
    one, other, third = (text(words) for words in ("SELECT :a + 1", "SELECT :a + 1", "SELECT :a + 2"))
    assert (
        prepared_statements.prepare(one).name
        == prepared_statements.prepare(other).name
        != prepared_statements.prepare(third).name
    )


def test_nothing_is_prepared_where_it_is_not_wanted(engine: Engine) -> None:
    statement = select(ROWS.c.name).where(ROWS.c.number == bindparam("n"))
    for where in (engine, allow_preparing(engine, False)):
        with where.connect() as connection:
            assert fetch_rows(connection, statement, {"n": 2, "unasked": 1}) == [("b",)]
            assert connection.execute(text("SELECT count(*) FROM pg_prepared_statements")).scalar_one() == 0
