"""What a text reads as, and what reading it costs the caller nothing to rely on: frozen, equal, remembered, limited."""

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError
from functools import partial

import pytest
from oneroster_filter import And, Clause, LimitError, Operator, Or, all_of, any_of, clauses, parse
from oneroster_filter.dialect import Dialect, Function
from oneroster_filter.typing import Expr

from tests.offenders import in_one_test


def eq(field: str, value: str) -> Clause:
    return Clause(field, Operator.EQUAL, value)


A, B, C, D = (eq(name, name.upper()) for name in "abcd")

READ_AS: dict[str, tuple[str, Expr]] = {
    "equals": ("a='A'", A),
    "not equals": ("a!='A'", Clause("a", Operator.NOT_EQUAL, "A")),
    "greater": ("a>'A'", Clause("a", Operator.GREATER, "A")),
    "greater or equal": ("a>='A'", Clause("a", Operator.GREATER_OR_EQUAL, "A")),
    "less": ("a<'A'", Clause("a", Operator.LESS, "A")),
    "less or equal": ("a<='A'", Clause("a", Operator.LESS_OR_EQUAL, "A")),
    "contains": ("a~'A'", Clause("a", Operator.CONTAINS, "A")),
    "spaces around the operator": ("a  = 'A'", A),
    "spaces around the filter": ("  a='A'   ", A),
    "many spaces around AND": ("a='A'   AND  b='B'", And((A, B))),
    "an empty value": ("a=''", eq("a", "")),
    "a doubled quote": ("familyName='O''Brien'", eq("familyName", "O'Brien")),
    "nothing but a quote": ("a=''''", eq("a", "'")),
    "quotes at both ends": ("a='''x'''", eq("a", "'x'")),
    "AND inside a value": ("a='x AND b=''y'''", eq("a", "x AND b='y'")),
    "operators inside a value": ("a='!=<>~'", eq("a", "!=<>~")),
    "a value of spaces": ("a=' x '", eq("a", " x ")),
    "a value of several lines": ("a='x\n\ty'", eq("a", "x\n\ty")),
    "a value in any script": ("a='Σ😀é'", eq("a", "Σ😀é")),
    "dots in a field": ("roles.org.sourcedId='1'", eq("roles.org.sourcedId", "1")),
    "digits and hyphens in a field": ("metadata.2nd-name_x='1'", eq("metadata.2nd-name_x", "1")),
    "a field called AND": ("AND='A'", eq("AND", "A")),
    "a field that begins like OR": ("a='A' OR ORDER='1'", Or((A, eq("ORDER", "1")))),
    "two clauses by AND": ("a='A' AND b='B'", And((A, B))),
    "two clauses by OR": ("a='A' OR b='B'", Or((A, B))),
    "three by AND": ("a='A' AND b='B' AND c='C'", And((A, B, C))),
    "three by OR": ("a='A' OR b='B' OR c='C'", Or((A, B, C))),
    "AND before OR": ("a='A' AND b='B' OR c='C'", Or((And((A, B)), C))),
    "AND after OR": ("a='A' OR b='B' AND c='C'", Or((A, And((B, C))))),
    "AND on both sides of OR": ("a='A' AND b='B' OR c='C' AND d='D'", Or((And((A, B)), And((C, D))))),
}


@in_one_test
@pytest.mark.parametrize(("text", "expr"), READ_AS.values(), ids=READ_AS)
def test_reads_as(text: str, expr: Expr) -> None:
    assert parse(text, max_clauses=4) == expr


def test_knows_where_each_part_of_a_clause_stands() -> None:
    text = " a = 'A' OR roles.role ~'B'"

    positions = [clause.position for clause in clauses(parse(text))]

    assert [(text[p.field], text[p.operator], text[p.value], p.text) for p in positions] == [
        ("a", "=", "'", text),
        ("r", "~", "'", text),
    ]


def test_position_takes_no_part_in_comparing_or_hashing() -> None:
    near, far = parse("a='A' AND b='B'"), parse("  a  =  'A'  AND  b  =  'B'")

    assert near == far
    assert hash(near) == hash(far)
    assert {near: "seen"}[far] == "seen"


def test_a_clause_knows_its_path() -> None:
    assert parse("class.sourcedId='1'").path == ("class", "sourcedId")


@pytest.mark.parametrize("expr", [A, And((A, B)), Or((A, B))], ids=["Clause", "And", "Or"])
def test_nodes_are_frozen(expr: Expr) -> None:
    with pytest.raises((FrozenInstanceError, AttributeError, TypeError)):
        setattr(expr, type(expr).__slots__[0], None)


def test_a_function_is_frozen() -> None:
    function = Function("year", {})
    with pytest.raises(FrozenInstanceError):
        function.name = "month"  # type: ignore[misc]


def test_clauses_come_in_the_order_of_the_text() -> None:
    assert clauses(parse("a='A' AND b='B' OR c='C'", max_clauses=3)) == (A, B, C)


def test_joining_is_flat_so_that_each_expression_has_one_tree() -> None:
    assert all_of(all_of(A, B), all_of(C)) == all_of(A, all_of(B, C)) == And((A, B, C))
    assert any_of(any_of(A, B), C) == any_of(A, any_of(B, C)) == Or((A, B, C))
    assert And((A, B, C)) == (A & B & C)
    assert Or((A, And((B, C)))) == (A | B & C)


def test_the_longest_text_is_an_argument() -> None:
    assert parse("a='A'", max_length=5) == A
    with pytest.raises(LimitError) as caught:
        parse("a='A' ", max_length=5)
    assert (caught.value.code, caught.value.column) == ("too-long", 5)


def test_the_most_clauses_are_an_argument() -> None:
    with pytest.raises(LimitError) as caught:
        parse("a='A' OR b='B'", max_clauses=1)
    assert (caught.value.code, caught.value.column) == ("too-many-clauses", 6)


@pytest.mark.parametrize("limit", ["max_clauses", "max_length"])
@pytest.mark.parametrize("number", [0, -1])
@pytest.mark.parametrize("make", [partial(parse, "a='A'"), Dialect], ids=["parse", "Dialect"])
def test_a_limit_below_one_does_not_mean_no_limit(make: Callable[..., object], number: int, limit: str) -> None:
    with pytest.raises(ValueError, match=f"{limit} is at least 1, not {number}"):
        make(**{limit: number})


def test_a_clause_too_many_is_refused_before_the_rest_is_read() -> None:
    with pytest.raises(LimitError):
        parse("a='A' OR b='B' OR ???")


def test_ten_thousand_clauses_are_read_where_the_caller_wants_them() -> None:
    text = " AND ".join(["a='A'"] * 10_000)

    assert len(clauses(parse(text, max_length=len(text), max_clauses=10_000))) == 10_000


def test_a_long_value_is_read_where_the_caller_wants_it() -> None:
    text = "a='" + "''" * 50_000 + "'"

    assert parse(text, max_length=len(text)) == eq("a", "'" * 50_000)


def test_a_hundred_thousand_spaces_are_passed_over_once() -> None:
    text = "a='A'" + " " * 100_000

    assert parse(text, max_length=len(text)) == A


def test_threads_may_read_at_once() -> None:
    texts = [f"a='{number % 50}' AND b='{number % 7}'" for number in range(2_000)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            read = list(pool.map(parse, texts))
    finally:
        sys.setswitchinterval(interval)

    assert read == [And((eq("a", str(number % 50)), eq("b", str(number % 7)))) for number in range(2_000)]
