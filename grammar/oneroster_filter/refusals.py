"""The reasons to refuse a filter, one row each: message and hint.

`refuse` builds errors from the rows, the tests have filters for each row, and the README lists the codes. The refusals
of the parser are in `syntax_refusals.py`.
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
    """

    code: str
    message: str
    hint: str | None = None
    error: type[FilterError] = FilterSyntaxError


_PARENTHESES = "AND binds tighter, and the language has no parentheses: write (a & b) | (a & c) for a & (b | c)"
_INSTANTS = "write 2026-11-21T02:00:00.000Z, or 2026-11-21; the + of an offset is %2B in a URL"
_ROWS = (
    Refusal("not-text", "a filter must be a str, not {found}", "decode bytes as UTF-8 first"),
    Refusal("nul", "a filter cannot contain a NUL character"),
    Refusal(
        "not-unicode",
        "a filter cannot contain half of a surrogate pair",
        "the text was decoded wrongly; a filter is percent-encoded UTF-8",
    ),
    Refusal("too-long", "the filter has {length} characters; the maximum is {limit}", None, LimitError),
    Refusal(
        "too-many-clauses",
        "the filter has more than {limit} clauses",
        "for OR, send several queries, and join their results; for AND, select among the records yourself",
        LimitError,
    ),
    Refusal("unknown-field", "there is no field {field}", None, UnknownFieldError),
    Refusal(
        "operator-not-taken", "{field} is {kind}, which does not have the operator {operator}", None, OperatorError
    ),
    Refusal(
        "not-a-flag",
        "{field} is true or false, and the value is neither",
        "write 'true' or 'false', in lower case",
        FilterValueError,
    ),
    Refusal("not-an-instant", "{field} is an instant, and the value is not one{why}", _INSTANTS, FilterValueError),
    Refusal(
        "not-a-day",
        "{field} is a day, and the value is not one{why}",
        "write 2026-11-21, without a time",
        FilterValueError,
    ),
    Refusal(
        "empty-item",
        "{field} is a list, and an item of the value is empty",
        "separate the items by one comma: '09,10'",
        FilterValueError,
    ),
    Refusal("value-refused", "the operator {operator} refuses the value: {why}", None, FilterValueError),
    Refusal(
        "not-a-field-name",
        "{field!r} is not a field name",
        "names of letters A to Z, digits, - and _, joined by single dots",
        ExpressionError,
    ),
    Refusal("no-text-for-value", "{found} cannot be written as a value", "{why}", ExpressionError),
    Refusal("or-inside-and", "an OR cannot be inside an AND", _PARENTHESES, ExpressionError),
    Refusal("one-operand", "AND and OR join at least two clauses", None, ExpressionError),
    Refusal("operand-inside", "AND joins only clauses, and OR does not join another OR", None, ExpressionError),
)

REFUSALS = {row.code: row for row in _ROWS}
"""The refusals that do not depend on a position in the text, by code."""

LONGEST_SHOWN = 100
"""The number of characters that a message shows of a text from the filter."""

FACTS = frozenset({"text", "column", "expected", "hint", "field", "operator", "value", "suggestion"})
"""The facts that an error has as attributes. Other facts only fill the message."""


def refuse(code: str, **facts: Any) -> FilterError:
    """Build the error of a row."""
    return build(REFUSALS[code], **facts)


def build(row: Refusal, **facts: Any) -> FilterError:
    """Build an error from a row at hand; see `refuse`."""
    shown = {name: _shorten(fact) if isinstance(fact, str) else fact for name, fact in facts.items()}
    hint = facts.get("hint") or (row.hint and row.hint.format_map(shown))
    kept = {name: fact for name, fact in facts.items() if name in FACTS}
    return row.error(row.code, row.message.format_map(shown), **{**kept, "hint": hint})


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."
