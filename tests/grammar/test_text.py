"""Expressions written as text, as part of a URL, and in Python."""

from datetime import UTC, date, datetime, timedelta, timezone
from urllib.parse import parse_qs

import pytest
from hypothesis import given, settings
from oneroster_filter import Expr, ExpressionError, F, parse, to_query, to_text

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
