"""Every refusal says what is wrong, where, what was expected and how to mend it: the tables, and their own examples."""

import pickle

import pytest
from oneroster_filter import (
    And,
    Clause,
    ExpressionError,
    F,
    FilterError,
    FilterSyntaxError,
    FilterValueError,
    Kind,
    LimitError,
    Operator,
    Or,
    UnknownFieldError,
    check,
    parse,
)
from oneroster_filter.errors import CARET_WINDOW
from oneroster_filter.refusals import LONGEST_SHOWN, REFUSALS
from oneroster_filter.syntax_refusals import SYNTAX_REFUSALS, ClausePart

from tests.offenders import in_one_test

from .refused import EXAMPLES, SYNTAX_EXAMPLES
from .samples import TYPES

SYNTAX = [
    (part, row, text)
    for part, rows in SYNTAX_REFUSALS.items()
    for row, (_, texts) in zip(rows, SYNTAX_EXAMPLES[part], strict=True)
    for text in texts
]
OTHERS = [(REFUSALS[code], text) for code, texts in EXAMPLES.items() for text in texts]
INSTEAD = {
    "status eq 'active'": "write = in place of eq",
    "name LIKE 'x'": "write ~ in place of LIKE",
    "a contains 'x'": "write ~ in place of contains",
    "a≠'x'": "write != in place of ≠",
    "a<>'x'": "write != in place of <>",
    "a=='x'": "write = in place of ==",
    "a=>'x'": "write >= in place of =>",
    "a=<'x'": "write <= in place of =<",
    "a~='x'": "write ~ in place of ~=",
    "contains(name,'x')": "write FIELD~'VALUE' in place of contains(FIELD, 'VALUE')",
    "a in ('x','y')": "write two clauses joined by OR; a list takes ~ and a comma list: grades~'09,10'",
}
"""The hints that name what another language writes."""

NOT_IN_A_TEXT = {
    "not-text",
    "too-long",
    "not-a-field-name",
    "no-text-for-value",
    "or-inside-and",
    "one-operand",
    "operand-inside",
    "value-refused",
}
"""The refusals that no text meets by itself; each has a test of its own here or in test_text.py."""


def refused(text: object) -> FilterError:
    """The error that a text meets, on its way from text to checked expression."""
    with pytest.raises(FilterError) as caught:
        check(parse(text), TYPES)
    return caught.value


@in_one_test
@pytest.mark.parametrize(("part", "row", "text"), SYNTAX, ids=lambda value: repr(value)[:40])
def test_each_malformed_example_meets_its_own_row(part: ClausePart, row, text: str) -> None:
    error = refused(text)

    assert type(error) is FilterSyntaxError
    assert (error.code, error.expected, error.text) == (row.code, part.value, text)
    assert error.message.endswith(row.message.partition("{found}")[2])
    assert error.hint == INSTEAD.get(text, row.hint and row.hint.format(symbols="= != > >= < <= ~"))
    assert 0 <= error.column <= len(text)


@in_one_test
@pytest.mark.parametrize(("row", "text"), OTHERS, ids=lambda value: repr(value)[:40])
def test_each_refused_example_meets_its_own_row(row, text: str) -> None:
    error = refused(text)

    assert (type(error), error.code, error.text) == (row.error, row.code, text)
    assert 0 <= error.column < len(text)


def test_every_row_has_examples_or_a_test_of_its_own() -> None:
    assert set(REFUSALS) - set(EXAMPLES) == NOT_IN_A_TEXT
    assert all(EXAMPLES.values())
    for part, rows in SYNTAX_REFUSALS.items():
        assert [row.code for row in rows] == [code for code, _ in SYNTAX_EXAMPLES[part]]
        assert all(texts for _, texts in SYNTAX_EXAMPLES[part])


def test_the_last_row_of_each_place_matches_anything() -> None:
    assert [rows[-1].pattern for rows in SYNTAX_REFUSALS.values()] == [""] * len(ClausePart)


PLACED = {
    "at the end": ("status", 6, ""),
    "at an unquoted value": ("status=active", 7, "active"),
    "past the spaces before a value": ("status =  active", 10, "active"),
    "at a quote that does not end": ("status='active' AND role='x", 25, "'x"),
    "at what follows a quote inside a value": ("familyName='O'Brien'", 14, "Brien'"),
    "at the end after AND": ("status='active' AND", 19, ""),
    "at a line break at the end": ("status='active'\n", 15, "\n"),
    "at a lower-case and": ("status='active' and role='x'", 16, "and role='x'"),
    "at a third clause": ("status='a' OR role='b' OR role='c'", 23, "OR role='c'"),
    "at an unknown field": ("status='a' OR rol='b'", 14, "rol='b'"),
    "at an operator that is not taken": ("enabledUser > 'true'", 12, "> 'true'"),
    "at a value of the wrong kind": ("enabledUser= 'yes'", 13, "'yes'"),
    "at a NUL": ("status='a\0b'", 9, "\0b'"),
}


@pytest.mark.parametrize(("text", "column", "rest"), PLACED.values(), ids=PLACED)
def test_the_column_is_where_it_is_wrong(text: str, column: int, rest: str) -> None:
    error = refused(text)

    assert (error.column, text[error.column :]) == (column, rest)


def test_the_error_reads_as_a_whole() -> None:
    assert str(refused("familyName='O'Brien' AND status='active'")) == (
        "the value ended at the quote before this (column 15)\n"
        "  familyName='O'Brien' AND status='active'\n"
        "                ^\n"
        "expected: AND, OR, the end of the filter\n"
        "hint: a quote inside a value is doubled: 'O''Brien'"
    )


def test_the_caret_line_of_a_long_text_is_a_window() -> None:
    error = refused(f"familyName='{'x' * 200}' and status='{'y' * 200}'")

    shown, caret = error.caret.split("\n")
    assert shown.startswith("...")
    assert shown.endswith("...")
    assert len(shown) == CARET_WINDOW + 6
    assert shown[caret.index("^") :].startswith("and")


def test_the_caret_line_of_a_text_that_fits_has_no_dots() -> None:
    shown = refused("='".ljust(CARET_WINDOW, "x")).caret.split("\n")[0]

    assert (len(shown), "..." in shown) == (CARET_WINDOW, False)


def test_the_caret_line_shows_no_control_characters() -> None:
    shown, caret = refused("status='\x1b[31m\n' and").caret.split("\n")

    assert shown == "status='\N{REPLACEMENT CHARACTER}[31m\N{REPLACEMENT CHARACTER}' and"
    assert shown[caret.index("^") :] == "and"


def test_an_error_without_a_place_has_no_caret_line() -> None:
    with pytest.raises(ExpressionError) as caught:
        F("a b") == "x"  # noqa: B015

    assert caught.value.caret is None
    assert str(caught.value).startswith("'a b' is not a field name\nhint: ")


MESSAGES = {
    "a line break at the end": ("status='x'\n", "a line break cannot be between the parts of a filter"),
    "a tab": ("status\t='x'", "a tab cannot be between the parts of a filter"),
    "a character without a form": ("status\x7f='x'", "U+007F is not an operator"),
    "NOT": ("NOT status='x'", "there is no NOT in this language"),
}


@pytest.mark.parametrize(("text", "message"), MESSAGES.values(), ids=MESSAGES)
def test_a_message_names_what_it_found(text: str, message: str) -> None:
    assert refused(text).message == message


def test_an_open_prefix_is_suggested_as_a_name_that_a_filter_can_write() -> None:
    error = refused("metadata='x'")

    assert (error.suggestion, error.hint) == (None, "write a key below it: metadata.KEY")


def test_a_message_does_not_repeat_a_long_text() -> None:
    error = refused("x" * 4000 + "='x'")

    assert error.field == "x" * 4000
    assert len(error.message) < 2 * LONGEST_SHOWN


SUGGESTIONS = {
    "another case": ("familyname='x'", "familyName"),
    "a slip": ("statsu='x'", "status"),
    "a name below": ("class='x'", "class.sourcedId"),
    "a slip below": ("roles.rol='x'", "roles.role"),
    "the end of a name": ("begindate='x'", "roles.beginDate"),
    "a slip above any key, without a key": ("metadat='x'", None),
    "a slip above any key": ("metadat.lunch.plan='x'", "metadata.lunch.plan"),
    "nothing near": ("shoeSize='42'", None),
    "nothing near a name of absurd length": ("s" * 65 + "='x'", None),
}


@pytest.mark.parametrize(("text", "suggestion"), SUGGESTIONS.values(), ids=SUGGESTIONS)
def test_an_unknown_field_suggests_the_nearest_known_name(text: str, suggestion: str | None) -> None:
    error = refused(text)

    assert isinstance(error, UnknownFieldError)
    assert error.suggestion == suggestion
    assert error.hint == (f"did you mean {suggestion}?" if suggestion else f"the fields are {', '.join(TYPES)}")


def test_a_field_with_several_below_is_answered_with_all_of_them() -> None:
    error = refused("roles='teacher'")

    assert error.suggestion is None
    below = [name for name in TYPES if name.startswith("roles.")]
    assert error.hint == f"write a field below it: {', '.join(below)}"
    assert len(below) > 1


def test_too_many_clauses_are_answered_with_what_to_do_for_each_join() -> None:
    hint = refused("a='x' AND b='y' AND c='z'").hint or ""

    assert "for OR, send several queries" in hint
    assert "for AND, select among the records" in hint


def test_an_operator_that_is_not_taken_is_answered_with_those_that_are() -> None:
    error = refused("grades>'09'")

    assert (error.field, error.operator, error.expected) == ("grades", ">", ("=", "!=", "~"))


@pytest.mark.parametrize("text", [None, b"a='x'", 7, ["a='x'"], {}], ids=repr)
def test_what_is_not_text_is_refused(text: object) -> None:
    error = refused(text)

    assert (error.code, type(error)) == ("not-text", FilterSyntaxError)


def test_a_hundred_thousand_characters_are_refused_before_they_are_read() -> None:
    error = refused("(" * 100_000)

    assert (error.code, type(error)) == ("too-long", LimitError)


BUILT_WRONGLY = {
    "a bad field": (lambda: Clause("a..b", Operator.EQUAL, "x"), "not-a-field-name"),
    "a NUL in a value": (lambda: Clause("a", Operator.EQUAL, "\0"), "nul"),
    "half a pair in a value": (lambda: Clause("a", Operator.EQUAL, "\ud800"), "not-unicode"),
    "an Or inside an And": (lambda: And((parse("a='x' OR b='y'"), parse("a='x'"))), "operand-inside"),
    "an Or inside an Or": (lambda: Or((parse("a='x' OR b='y'"), parse("a='x'"))), "operand-inside"),
    "an And of one": (lambda: And((parse("a='x'"),)), "one-operand"),
    "an Or of none": (lambda: Or(()), "one-operand"),
    "a joined Or": (lambda: parse("a='x' OR b='y'") & parse("a='x'"), "or-inside-and"),
}


@pytest.mark.parametrize(("build", "code"), BUILT_WRONGLY.values(), ids=BUILT_WRONGLY)
def test_an_expression_without_a_text_cannot_be_built(build, code: str) -> None:
    with pytest.raises(FilterError) as caught:
        build()

    assert caught.value.code == code


def test_a_built_expression_is_shown_as_its_text() -> None:
    with pytest.raises(FilterError) as caught:
        check(F("status").contains("x") & (F("enabledUser") == "it's"), TYPES)

    assert caught.value.caret == "enabledUser='it''s'\n            ^"


def test_the_facts_are_plain_values() -> None:
    assert refused("enabledUser='yes'").as_dict() == {
        "code": "not-a-flag",
        "message": "enabledUser is true or false, and the value is neither",
        "text": "enabledUser='yes'",
        "column": 12,
        "expected": ("true or false",),
        "hint": "write 'true' or 'false', in lower case",
        "field": "enabledUser",
        "operator": "=",
        "value": "yes",
    }


def test_errors_travel_between_processes() -> None:
    error = refused("enabledUser='yes'")

    assert str(pickle.loads(pickle.dumps(error))) == str(error)


MESSAGES = {
    "two joins, not three clauses": ("a='1' OR OR b='2'", "a clause is missing before OR", 9),
    "a join first": ("AND a='1'", "a clause is missing before AND", 0),
    "a letter of another alphabet": ("ståtus='x'", "å cannot be in a field name", 2),
    "a space in a name": ("given name='x'", "there is a space in a field name, before name", 6),
    "absence": ("status is null", "nothing tests whether a value is absent", 7),
}


@pytest.mark.parametrize(("text", "message", "column"), MESSAGES.values(), ids=MESSAGES)
def test_a_refusal_names_its_cause(text: str, message: str, column: int) -> None:
    with pytest.raises(FilterSyntaxError) as caught:
        parse(text)
    assert (caught.value.message, caught.value.column) == (message, column)


HINTS = {
    "in": ("status in 'a,b'", "two clauses joined by OR; a list takes ~"),
    "contains": ("contains(x,'y')", "write FIELD~'VALUE' in place of contains(FIELD, 'VALUE')"),
    "another function": ("startswith(x,'y')", "write a field, an operator and a value"),
    "absence": ("email=null", "!= also finds the records without a value"),
    "a space": ("given name='x'", "names have no spaces"),
}


@pytest.mark.parametrize(("text", "hint"), HINTS.values(), ids=HINTS)
def test_a_hint_says_what_to_write(text: str, hint: str) -> None:
    with pytest.raises(FilterSyntaxError) as caught:
        parse(text)
    assert hint in str(caught.value.hint)


PARTS = {
    "2026-13-01": "there is no month 13",
    "2026-00-10": "there is no month 00",
    "2026-11-31": "there is no day 31 in this month",
    "2026-11-32": "there is no day 32",
    "0000-11-21": "there is no year 00",
    "2026-11-21T25:00:00Z": "there is no hour 25",
    "2026-11-21T10:61": "there is no minute 61",
    "2026-11-21T10:00:60Z": "there is no second 60",
}


@pytest.mark.parametrize(("value", "why"), PARTS.items(), ids=PARTS)
def test_the_part_of_a_time_that_is_wrong_is_named(value: str, why: str) -> None:
    for kind in (Kind.INSTANT, *([] if "T" in value else [Kind.DAY])):
        with pytest.raises(FilterValueError) as caught:
            check(parse(f"at='{value}'"), {"at": kind})
        assert caught.value.message.endswith(f", and the value is not one: {why}")
    with pytest.raises(FilterValueError, match=r"is not one \(column 4\)"):
        check(parse("at='soon'"), {"at": Kind.INSTANT})


def test_an_unknown_field_without_a_near_one_lists_all() -> None:
    with pytest.raises(UnknownFieldError) as caught:
        check(parse("shoe='x'"), {"status": Kind.TEXT, "grades": Kind.TEXTS})
    assert caught.value.hint == "the fields are status, grades"
