"""A statement with frozen parts finds what the same statement finds without them, whatever stands in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.db.frozen_sql import freeze, freeze_select
from roster_service.db.prepared_statements import allow_preparing, compile_statement, fetch_rows
from roster_service.db.tables import CText

WORDS = ["a", "50 %", "100 %%", "it's", "back\\slash", "\\:d", ":d", "12:30:45", "a::text", "%(given)s", "$1", "é"]
WORD = sa.table("words", sa.column("word", CText), sa.column("number", sa.Integer))
GIVEN: sa.BindParameter[str] = sa.bindparam("given", type_=CText)


@pytest.fixture(scope="module")
def words(make_database: Callable[[], str]) -> Any:
    engine = sa.create_engine(make_database().replace("postgresql:", "postgresql+psycopg2:"))
    with engine.begin() as connection:
        connection.execute(sa.text('CREATE TABLE words (word text COLLATE "C", number integer)'))
        connection.execute(sa.insert(WORD), [{"word": word, "number": at} for at, word in enumerate(WORDS)])
    yield engine
    engine.dispose()


def count_others(word: sa.ColumnElement[str]) -> sa.ColumnElement[int]:
    """A subquery about each row, with an alias of the same table."""
    other = WORD.alias()
    return sa.select(sa.func.count()).where(other.c.word != word, other.c.word != GIVEN).scalar_subquery()


EXPRESSIONS: dict[str, sa.ColumnElement[Any]] = {
    "a constant that looks like anything": WORD.c.word.in_(WORDS[1:7]),
    "a constant with a colon": WORD.c.word + sa.literal(":d 10:20 \\:x", CText),
    "an operator with a percent sign": WORD.c.number % 3,
    "a bound value": WORD.c.word == GIVEN,
    "a bound value, twice": GIVEN + WORD.c.word + GIVEN,
    "a row of the enclosing statement": count_others(WORD.c.word),
    "a text": sa.literal_column("'it''s 12:30 \\:x'", CText),
}


@pytest.mark.parametrize("prepared", [True, False], ids=["prepared", "plain"])
@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_a_frozen_expression_is_the_same_expression(
    words: sa.Engine, expression: sa.ColumnElement[Any], prepared: bool
) -> None:
    def find(value: sa.ColumnElement[Any], given: str) -> list[Any]:
        rows = sa.select(WORD.c.number, value.label("value")).select_from(WORD).order_by(WORD.c.number)
        with allow_preparing(words, prepared).connect() as connection:
            found = [tuple(row) for row in fetch_rows(connection, rows, {"given": given})]
            assert [tuple(row) for row in connection.execute(rows, {"given": given})] == found
            return found

    frozen = freeze(expression, WORD)
    for given in WORDS:
        assert find(frozen, given) == find(expression, given)
    assert isinstance(frozen.type, type(expression.type))


def test_a_frozen_select_is_a_cte_with_the_same_rows(words: sa.Engine) -> None:
    named = sa.select(WORD.c.word, WORD.c.number).where(WORD.c.word != GIVEN).cte("named")
    rows = sa.select(named.c.word, (named.c.number * 2).label("twice")).where(named.c.word != sa.literal(":d", CText))
    frozen = freeze_select(rows, "frozen")
    assert [(column.name, type(column.type)) for column in frozen.c] == [
        ("word", CText.__class__),
        ("twice", sa.Integer),
    ]
    beside = sa.select(frozen.c.word, frozen.c.twice, WORD.c.number).join(WORD, WORD.c.word == frozen.c.word)
    with words.connect() as connection:
        found = connection.execute(beside, {"given": "it's"}).all()
        assert sorted(row[:2] for row in found) == sorted(map(tuple, connection.execute(rows, {"given": "it's"})))
        assert all(twice == 2 * number for _, twice, number in found)


def test_what_callers_bind_stays_bound() -> None:
    frozen = freeze(sa.and_(WORD.c.word == GIVEN, WORD.c.word != "planted"), WORD)
    made = compile_statement(sa.select(WORD.c.number).where(frozen))
    assert made.values == ("given",)
    assert "'planted'" in made.text
