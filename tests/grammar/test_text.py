"""Expressions written as text, as part of a URL, and in Python."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from urllib.parse import parse_qs

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from oneroster_filter import ExpressionError, F, check, parse, predicate, sql_text, to_query, to_text
from oneroster_filter.sqlalchemy import sqlalchemy_where
from oneroster_filter.typing import Expr

from tests.extent import examples

from .samples import any_clauses, expressions

BUILT = {
    "all operators": (
        (F("a") == "1") | (F("a") != "2") | (F("a") > "3") | (F("a") >= "4") | (F("a") < "5") | (F("a") <= "6"),
        "a='1' OR a!='2' OR a>'3' OR a>='4' OR a<'5' OR a<='6'",
    ),
    "contains": (F("familyName").contains("O'B") & (F("status") == "active"), "familyName~'O''B' AND status='active'"),
    "AND binds tighter": ((F("a") == "1") | (F("b") == "2") & (F("c") == "3"), "a='1' OR b='2' AND c='3'"),
    "a flag": (F("enabledUser") == True, "enabledUser='true'"),  # noqa: E712
    "another flag": (F("enabledUser") != False, "enabledUser!='false'"),  # noqa: E712
    "an instant": (F("d") > datetime(2026, 11, 21, 2, tzinfo=UTC), "d>'2026-11-21T02:00:00.000Z'"),
    "an instant is cut to its millisecond": (
        F("d") == datetime(2026, 11, 21, 2, 0, 0, 123999, UTC),
        "d='2026-11-21T02:00:00.123Z'",
    ),
    "an instant elsewhere is written in UTC": (
        F("d") <= datetime(2026, 11, 21, 1, tzinfo=timezone(timedelta(hours=2))),
        "d<='2026-11-20T23:00:00.000Z'",
    ),
    "a day": (F("d") >= date(2026, 11, 21), "d>='2026-11-21'"),
    "a list": (F("grades").contains(["09", "10"]), "grades~'09,10'"),
    "a list in a tuple": (F("grades") == ("09",), "grades='09'"),
    "an empty text": (F("a") == "", "a=''"),
}


@pytest.mark.parametrize(("expr", "text"), BUILT.values(), ids=BUILT)
def test_built_in_python(expr: Expr, text: str) -> None:
    assert to_text(expr) == text
    assert parse(text, max_clauses=6) == expr


UNWRITABLE = {
    "a number": 7,
    "nothing": None,
    "a datetime without a zone": datetime(2026, 11, 21),  # noqa: DTZ001
    "an instant before the year 1": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5))),
    "an instant after the year 9999": datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-5))),
    "no items": [],
    "an item with a comma": ["a,b"],
    "an item with a space at its end": ["a "],
    "an empty item": ["a", ""],
    "an item that is no text": [9],
    "bytes": b"09",
}


@pytest.mark.parametrize("value", UNWRITABLE.values(), ids=UNWRITABLE)
def test_what_has_no_text_is_refused(value: object) -> None:
    with pytest.raises(ExpressionError) as caught:
        F("a") == value  # noqa: B015

    assert caught.value.code == "no-text-for-value"
    assert caught.value.hint


TYPED = check(parse("a='x'"), {"a": str})
MISTAKEN = {
    "a text to check": (lambda: check("a='x'", {"a": str}), "what `parse` returned, not str"),
    "a checked expression to check": (lambda: check(TYPED, {"a": str}), "what `parse` returned, not TypedClause"),
    "a text to write": (lambda: to_text("a='x'"), "what `parse` returned, not str"),
    "an unchecked expression": (lambda: predicate(parse("a='x'")), "what `check` returned, not Clause"),
    "an unchecked And": (lambda: predicate(parse("a='x' AND b='y'")), "what `check` returned, not Clause"),
    "a text to a back end": (lambda: predicate("a='x'"), "what `check` returned, not str"),
    "an unchecked expression to SQLAlchemy": (
        lambda: sqlalchemy_where(parse("a='x'"), {"a": sa.column("a")}),
        "what `check` returned, not Clause",
    ),
    "an unchecked expression to SQL": (
        lambda: sql_text(parse("a='x'"), {"a": "a"}),
        "what `check` returned, not Clause",
    ),
    "an unchecked expression to Django": (
        lambda: pytest.importorskip("oneroster_filter.django").django_q(parse("a='x'"), {"a": "a"}),
        "what `check` returned, not Clause",
    ),
}


@pytest.mark.parametrize(("call", "message"), MISTAKEN.values(), ids=MISTAKEN)
def test_a_wrong_stage_of_an_expression_is_refused_by_name(call: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


WITHOUT_TRUTH = {
    "and": lambda: F("a") == "x" and F("b") == "y",
    "or": lambda: F("a") == "x" or F("b") == "y",
    "not": lambda: not F("a").contains("x"),
    "a chain": lambda: "1" < F("a") < "3",
    "an And": lambda: bool(parse("a='x' AND b='y'")),
    "an Or": lambda: bool(parse("a='x' OR b='y'")),
    "a checked clause": lambda: bool(check(parse("a='x'"), {"a": str})),
}


@pytest.mark.parametrize("evaluate", WITHOUT_TRUTH.values(), ids=WITHOUT_TRUTH)
def test_an_expression_has_no_truth_value_that_could_drop_a_clause(evaluate: Callable[[], object]) -> None:
    with pytest.raises(TypeError, match=r"join clauses by & and \|"):
        evaluate()


def test_a_field_is_not_a_key() -> None:
    with pytest.raises(TypeError):
        hash(F("a"))


@settings(max_examples=examples(120, 120, 500), deadline=None)
@given(expressions(any_clauses))
def test_what_is_written_reads_as_the_same(expr: Expr) -> None:
    text = to_text(expr)

    assert parse(text, max_length=len(text), max_clauses=9) == expr


@settings(max_examples=examples(60, 60, 200), deadline=None)
@given(expressions(any_clauses))
def test_what_is_written_for_a_url_arrives_as_the_text(expr: Expr) -> None:
    assert parse_qs(f"limit=5&filter={to_query(expr)}&x=y", keep_blank_values=True)["filter"] == [to_text(expr)]


def test_a_url_has_nothing_but_letters_digits_and_percents() -> None:
    assert to_query(F("familyName").contains("Ö'B & +") & (F("status") == "active")) == (
        "familyName~%27%C3%96%27%27B%20%26%20%2B%27%20AND%20status%3D%27active%27"
    )
