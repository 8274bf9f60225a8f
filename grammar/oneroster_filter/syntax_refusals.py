"""The refusals of the parser: rows of (expected part, pattern of the text found, message), tried in order.

The parser only knows which part of a clause it expected, and at which position it stopped. The first row of that part
whose pattern matches there explains the error; the last row of each part matches any text.
"""

import re
from dataclasses import dataclass
from enum import Enum

from oneroster_filter.errors import FilterError
from oneroster_filter.nodes import Operator
from oneroster_filter.refusals import Refusal, build


class ClausePart(Enum):
    """The part of a clause that the parser expected. The value is the `expected` attribute of the error; in a dialect
    with extra operators, that of OPERATOR also has these."""

    FIELD = ("a field name",)
    OPERATOR = tuple(operator.value for operator in Operator)
    VALUE = ("a value in single quotes",)
    JOIN = ("AND", "OR", "the end of the filter")


@dataclass(frozen=True, slots=True)
class SyntaxRefusal(Refusal):
    """A refusal of the text itself.

    Args:
        pattern: A regular expression, matched against the text at the position where the parser stopped.
    """

    pattern: str = ""


DECODE = "decode the query string once before the filter is read"
SYMBOLS = "the operators are {symbols}"
CALL = "write a field, an operator and a value: familyName~'son'"
NO_PARENTHESES = "AND binds tighter than OR; a filter has no groups"
DOUBLE = "a quote inside a value is doubled: 'O''Brien'"
NOT_EQUAL = "write != in place of NOT and ="
IN_CAPITALS = "clauses are joined by AND or by OR, in capitals"
NAMES = "field names are made of the letters A to Z, digits, - and _"
ABSENCE = "nothing tests whether a value is absent"
SELECT_YOURSELF = "select among the records yourself; != also finds the records without a value"
QUOTE = "every value is in single quotes, numbers and dates too"


def _row(pattern: str, code: str, message: str, hint: str | None = None) -> SyntaxRefusal:
    return SyntaxRefusal(code, message, hint, pattern=pattern)


_ENCODED = _row(r"%[0-9A-Fa-f]{2}", "encoded", "the text is still percent-encoded", DECODE)
_WHITE_SPACE = _row(
    r"[^\S ]",
    "white-space",
    "{found} cannot be between the parts of a filter",
    "only spaces can; remove line breaks and tabs",
)

SYNTAX_REFUSALS: dict[ClausePart, tuple[SyntaxRefusal, ...]] = {
    ClausePart.FIELD: (
        _row(r"\A *\Z", "empty", "the filter is empty", "omit the parameter to get every record"),
        _WHITE_SPACE,
        _row(r"\Z", "clause-missing", "a clause is missing at the end"),
        _row(r"(?i:AND|OR)\b", "clause-missing", "a clause is missing before {found}"),
        _row(r"\(", "parenthesis", "there are no parentheses in this language", NO_PARENTHESES),
        _row(r"['\"“”‘’]", "value-first", "a clause begins with its field, not with a value", "write status='active'"),
        # A word before a value is an operator of a dialect: a field name would be a FIELD token.
        _row(r"[=!<>~]|[A-Za-z]+ *'", "field-missing", "the field is missing before the operator"),
        _row(r"\.", "name-missing", "a name is missing before the dot"),
        _ENCODED,
        _row("", "bad-field-character", "{found} cannot begin a field name", NAMES),
    ),
    ClausePart.OPERATOR: (
        _row(r"\Z", "operator-missing", "the operator and the value are missing"),
        _WHITE_SPACE,
        _row(r"\.", "name-missing", "a name is missing after the dot"),
        _row(r"'", "operator-missing", "the operator is missing before the value", SYMBOLS),
        _ENCODED,
        _row(r"(?i:(?<=\bNOT )|(?<=\bNOT)\()", "negation", "there is no NOT in this language", NOT_EQUAL),
        _row(r"\(", "function", "the language has no such function of a field", CALL),
        _row(
            r"(?<=[A-Za-z0-9_-])(?P<found>(?=\w)[^\x00-\x7f])",
            "bad-field-character",
            "{found} cannot be in a field name",
            NAMES,
        ),
        _row(r"(?i)(?:is +(?:not +)?(?:null|empty|none)|pr|exists)\b", "absence", ABSENCE, SELECT_YOURSELF),
        _row(
            r"[A-Za-z0-9_-]+ *[=!<>~]",
            "space-in-name",
            "there is a space in a field name, before {found}",
            "names have no spaces, as familyName",
        ),
        _row(r"[A-Za-z0-9_-]", "operator-in-words", "{found} is not an operator", SYMBOLS),
        _row("", "unknown-operator", "{found} is not an operator", SYMBOLS),
    ),
    ClausePart.VALUE: (
        _row(r"\Z", "value-missing", "the value is missing"),
        _WHITE_SPACE,
        _row(r"'", "quote-open", "the value's closing quote is missing", DOUBLE),
        _row(
            r"[\"“”„«»‘’‚`´]",
            "other-quotes",
            "{found} does not quote a value",
            "quote values with ' (the plain apostrophe)",
        ),
        _row(r"[=!<>~]", "unknown-operator", "there are two operators in a row", SYMBOLS),
        _ENCODED,
        _row(r"(?i)(?:null|none)\b", "absence", ABSENCE, SELECT_YOURSELF),
        _row("", "value-unquoted", "the value is not quoted", QUOTE),
    ),
    ClausePart.JOIN: (
        _WHITE_SPACE,
        _row(r"(?:AND|OR)\b|(?<= )(?:AND|OR)", "join-spaces", "AND and OR need a space on both sides"),
        _row(r"(?<=')[^ )&|,;+]", "quote-inside", "the value ended at the quote before this", DOUBLE),
        _row(r"(?i)(and|or)\b", "join-case", "{found} is written in capitals: AND, OR"),
        _row(r"[&|,;+]", "join-symbol", "clauses are joined by AND or by OR"),
        _row(r"[()]", "parenthesis", "there are no parentheses in this language", NO_PARENTHESES),
        _ENCODED,
        _row("", "join-missing", "{found} cannot follow a clause", IN_CAPITALS),
    ),
}
"""The refusals of each expected part, in the order in which they are tried."""

INSTEAD = {
    **dict.fromkeys(("eq", "is", "equals", "=="), "="),
    **dict.fromkeys(("ne", "<>", "≠"), "!="),
    **dict.fromkeys(("gt",), ">"),
    **dict.fromkeys(("ge", "=>", "≥"), ">="),
    **dict.fromkeys(("lt",), "<"),
    **dict.fromkeys(("le", "=<", "≤"), "<="),
    **dict.fromkeys(("co", "contains", "like", "ilike", "~="), "~"),
}
"""The operators of other languages, in lower case, with those of this one."""

REMEDIES = {"in": "write two clauses joined by OR; a list takes ~ and a comma list: grades~'09,10'"}
"""What to write in place of other words where an operator is expected."""

_SPOKEN = {"\n": "a line break", "\r": "a line break", "\t": "a tab"}
_COMPILED = {part: tuple((re.compile(row.pattern), row) for row in rows) for part, rows in SYNTAX_REFUSALS.items()}
_JOIN_FIRST = re.compile(r"(?:^|[' ])(AND|OR) *\Z", re.IGNORECASE)
_CALLED = re.compile(r"([A-Za-z]+) *\Z")
_WORD = re.compile(r"\w{1,24}|.?", re.DOTALL)


def explain(text: str, part: ClausePart, column: int, symbols: tuple[str, ...]) -> FilterError:
    """Make the error for a text that the parser cannot read beyond a position."""
    column = column if text.strip(" ") else 0
    if part is ClausePart.OPERATOR and (join := _JOIN_FIRST.search(text, 0, column)):
        # At the begin of a clause, the parser reads such a word as the name of a field.
        part, column = ClausePart.FIELD, join.start(1)
    row, stopped = next((row, stop) for pattern, row in _COMPILED[part] if (stop := pattern.match(text, column)))
    expected = symbols if part is ClausePart.OPERATOR else part.value
    word = _WORD.match(text, column)
    found = stopped.groupdict().get("found") or (word[0] if word else "")
    shown = _SPOKEN.get(found) or (found if found.isprintable() else f"U+{ord(found):04X}")
    hint = None
    if row.hint == SYMBOLS:
        # Of two operators in a row, the first is before the position.
        written = next((one for one in (found, text[column - 1 : column + 1]) if one.lower() in INSTEAD), None)
        hint = REMEDIES.get(found.lower()) or (written and f"write {INSTEAD[written.lower()]} in place of {written}")
    elif row.hint == CALL and (called := _CALLED.search(text, 0, column)) and called[1].lower() in INSTEAD:
        hint = f"write FIELD{INSTEAD[called[1].lower()]}'VALUE' in place of {called[1]}(FIELD, 'VALUE')"
    return build(row, text=text, column=column, expected=expected, found=shown, symbols=" ".join(symbols), hint=hint)
