"""The reasons to refuse a filter, one row each: message, hint, and examples of refused filters.

`refuse` builds errors from the rows, the tests check that every example leads to its own row, and the README lists the
codes. To add a refusal, add a row. The refusals of the parser are in `syntax_refusals.py`.
"""

from dataclasses import dataclass
from typing import Any

from oneroster_filter.errors import (
    ExpressionError,
    FilterError,
    FilterSyntaxError,
    FilterValueError,
    LimitError,
    OperatorError,
    UnknownFieldError,
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """One reason to refuse.

    Args:
        code: Its name, which never changes.
        message: What is wrong, with facts of the error in braces.
        hint: How to correct the filter, with facts in braces. The caller of `refuse` can replace it.
        error: The class of the error.
        examples: Filters that it refuses, checked against the field types of `tests/grammar/samples.py`. A refusal that
            no text alone can cause (an expression built in code, a limit of the caller) has none.
    """

    code: str
    message: str
    hint: str | None = None
    error: type[FilterError] = FilterSyntaxError
    examples: tuple[str, ...] = ()


_ROWS = (
    Refusal(
        "not-text",
        "a filter must be a str, not {found}",
        hint="decode bytes as UTF-8 first",
    ),
    Refusal(
        "nul",
        "a filter cannot contain a NUL character",
        examples=("a='x\0'", "\0", "a\0='x'", "a='x' AND\0b='y'"),
    ),
    Refusal(
        "not-unicode",
        "a filter cannot contain half of a surrogate pair",
        hint="the text was decoded wrongly; a filter is percent-encoded UTF-8",
        examples=("a='\ud800'", "a='\udfff\ud800'"),
    ),
    Refusal("too-long", "the filter has {length} characters; the maximum is {limit}", error=LimitError),
    Refusal(
        "too-many-clauses",
        "the filter has more than {limit} clauses",
        hint="send the query more than once, and join the results",
        error=LimitError,
        examples=(
            "status='active' AND role='student' AND familyName='x'",
            "status='active' OR role='student' AND familyName='x' OR",
        ),
    ),
    Refusal(
        "unknown-field",
        "there is no field {field}",
        error=UnknownFieldError,
        examples=(
            "familyname='x'",
            "shoeSize='42'",
            "class.title='x'",
            "class='x'",
            "metadatum.a='x'",
            "metadata='x'",
        ),
    ),
    Refusal(
        "operator-not-taken",
        "{field} is {kind}, which does not have the operator {operator}",
        error=OperatorError,
        examples=("enabledUser~'true'", "dateLastModified~'2026'", "birthDate~'2010'", "grades>'09'", "grades<='09'"),
    ),
    Refusal(
        "not-a-flag",
        "{field} is true or false, and the value is neither",
        hint="write 'true' or 'false', in lower case",
        error=FilterValueError,
        examples=("enabledUser='yes'", "enabledUser='True'", "enabledUser='1'", "enabledUser=''"),
    ),
    Refusal(
        "not-an-instant",
        "{field} is an instant, and the value is not one",
        hint="write 2026-11-21T02:00:00.000Z, or 2026-11-21; the + of an offset is %2B in a URL",
        error=FilterValueError,
        examples=(
            "dateLastModified>'yesterday'",
            "dateLastModified>'2026-11-21T02:00:00 01:00'",
            "dateLastModified>'2026-02-30'",
            "dateLastModified>'2026-11-21T24:00:00Z'",
            "dateLastModified>'2026-11-21T23:59:60Z'",
            "dateLastModified>'2026-11-21T02:00:00+25:00'",
            "dateLastModified>'0001-01-01T00:00:00+01:00'",
            "dateLastModified='9999-12-31T23:59:59-01:00'",
            "dateLastModified>'0000-01-01'",
            "dateLastModified>'20261121T020000Z'",
            "dateLastModified>'2026-11-21T02:0000Z'",
            "dateLastModified>'2026-11-21T02:00:0000Z'",
            "dateLastModified>'2026-11-21T02:00:00.Z'",
            "dateLastModified>'2026-11-21T02Z'",
            "dateLastModified>'2026-W47-6'",
            "dateLastModified>'٢٠٢٦-11-21'",
            "dateLastModified>''",
        ),
    ),
    Refusal(
        "not-a-day",
        "{field} is a day, and the value is not one",
        hint="write 2026-11-21, without a time",
        error=FilterValueError,
        examples=("birthDate='2026-11-21T00:00:00Z'", "birthDate<'2010'", "birthDate='2011-02-29'", "birthDate=''"),
    ),
    Refusal(
        "empty-item",
        "{field} is a list, and an item of the value is empty",
        hint="separate the items by one comma: '09,10'",
        error=FilterValueError,
        examples=("grades=''", "grades~'09,'", "grades=',09'", "grades~'09,,10'", "grades!=' '"),
    ),
    Refusal(
        "not-a-field-name",
        "{field!r} is not a field name",
        hint="names of letters A to Z, digits, - and _, joined by single dots",
        error=ExpressionError,
    ),
    Refusal("no-text-for-value", "{found} cannot be written as a value", hint="{why}", error=ExpressionError),
    Refusal(
        "or-inside-and",
        "an OR cannot be inside an AND",
        hint="AND binds tighter, and the language has no parentheses: write (a & b) | (a & c) for a & (b | c)",
        error=ExpressionError,
    ),
    Refusal("one-operand", "AND and OR join at least two clauses", error=ExpressionError),
    Refusal("operand-inside", "AND joins only clauses, and OR does not join another OR", error=ExpressionError),
)

REFUSALS = {row.code: row for row in _ROWS}
"""The refusals that do not depend on a position in the text, by code."""

LONGEST_SHOWN = 100
"""The number of characters that a message shows of a text from the filter."""

FACTS = frozenset({"text", "column", "expected", "hint", "field", "operator", "value", "suggestion"})
"""The facts that an error has as attributes. Other facts only fill the message."""


def refuse(code: str, **facts: Any) -> FilterError:
    """Build the error of a row.

    Args:
        code: The row's code.
        facts: The attributes of the error, and the other facts that the message and the hint name.

    Returns:
        The error, to be raised.
    """
    return build(REFUSALS[code], **facts)


def build(row: Refusal, **facts: Any) -> FilterError:
    """Build an error from a row at hand; see `refuse`."""
    shown = {name: _shorten(fact) if isinstance(fact, str) else fact for name, fact in facts.items()}
    hint = facts.get("hint") or (row.hint and row.hint.format_map(shown))
    kept = {name: fact for name, fact in facts.items() if name in FACTS}
    return row.error(row.code, row.message.format_map(shown), **{**kept, "hint": hint})


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."
