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


ENCODED = r"%[0-9A-Fa-f]{2}"
DECODE = "decode the query string once before the filter is read"
SYMBOLS = "the operators are {symbols}"
NO_PARENTHESES = "AND binds tighter than OR; a filter has no groups"
DOUBLE = "a quote inside a value is doubled: 'O''Brien'"

SYNTAX_REFUSALS: dict[ClausePart, tuple[SyntaxRefusal, ...]] = {
    ClausePart.FIELD: (
        SyntaxRefusal(
            "empty",
            "the filter is empty",
            "omit the parameter to get every record",
            pattern=r"\A *\Z",
            examples=("", "   "),
        ),
        SyntaxRefusal(
            "clause-missing", "a clause is missing at the end", pattern=r"\Z", examples=("a='x' AND ", "a='x' OR  ")
        ),
        SyntaxRefusal(
            "parenthesis",
            "there are no parentheses in this language",
            NO_PARENTHESES,
            pattern=r"\(",
            examples=("(a='x')", "a='x' AND (b='y' OR c='z')"),
        ),
        SyntaxRefusal(
            "value-first",
            "a clause begins with its field, not with a value",
            "write status='active'",
            pattern=r"['\"“”‘’]",
            examples=("'active'=status", "\"status\"='active'", "a='x' AND 'y'=b"),
        ),
        SyntaxRefusal(
            "field-missing",
            "the field is missing before the operator",
            # A word before a value is an operator of a dialect: a field name would be a FIELD token.
            pattern=r"[=!<>~]|[A-Za-z]+ *'",
            examples=("='x'", "a='x' AND !='y'"),
        ),
        SyntaxRefusal(
            "name-missing", "a name is missing before the dot", pattern=r"\.", examples=(".a='x'", "a='x' OR .b='y'")
        ),
        SyntaxRefusal(
            "encoded",
            "the text is still percent-encoded",
            DECODE,
            pattern=ENCODED,
            examples=("%20a='x'", "%73tatus='x'"),
        ),
        SyntaxRefusal(
            "bad-field-character",
            "{found} cannot begin a field name",
            "field names are made of the letters A to Z, digits, - and _",
            examples=("é='x'", "$a='x'", "\ta='x'", "[a]='x'", "`a`='x'"),
        ),
    ),
    ClausePart.OPERATOR: (
        SyntaxRefusal(
            "operator-missing",
            "the operator and the value are missing",
            pattern=r"\Z",
            examples=("status", "a='x' AND status", "status ", "a"),
        ),
        SyntaxRefusal(
            "name-missing",
            "a name is missing after the dot",
            pattern=r"\.",
            examples=("a.='x'", "a..b='x'", "a."),
        ),
        SyntaxRefusal(
            "operator-missing",
            "the operator is missing before the value",
            SYMBOLS,
            pattern=r"'",
            examples=("status'active'", "a 'x'"),
        ),
        SyntaxRefusal(
            "encoded",
            "the text is still percent-encoded",
            DECODE,
            pattern=ENCODED,
            examples=("status%3D'active'", "status%3D%27active%27", "a%20=%20'x'"),
        ),
        SyntaxRefusal(
            "operator-in-words",
            "{found} is not an operator",
            SYMBOLS,
            pattern=r"[A-Za-z0-9_-]",
            examples=(
                "status eq 'active'",
                "name LIKE 'x'",
                "NOT status='active'",
                "family name='x'",
                "a in ('x','y')",
            ),
        ),
        SyntaxRefusal(
            "unknown-operator",
            "{found} is not an operator",
            SYMBOLS,
            examples=(
                "a:'x'",
                "a*'x'",
                "a('x')",
                "a,b='x'",
                "a≠'x'",
                "a\t='x'",
                "naïve='x'",
                "a\n='x'",
                "a!'x'",
                "a!~'x'",
            ),
        ),
    ),
    ClausePart.VALUE: (
        SyntaxRefusal("value-missing", "the value is missing", pattern=r"\Z", examples=("a=", "a = ", "a='x' AND b>=")),
        SyntaxRefusal(
            "quote-open",
            "the value's closing quote is missing",
            DOUBLE,
            pattern=r"'",
            examples=("a='x", "a='", "a='''", "a='O''Hara", "a='x' AND b='y", "a='it''"),
        ),
        SyntaxRefusal(
            "other-quotes",
            "{found} does not quote a value",
            "quote values with ' (the plain apostrophe)",
            pattern=r"[\"“”„«»‘’‚`´]",
            examples=('a="x"', "a=“x”", "a=‘x’", "a=`x`"),
        ),
        SyntaxRefusal(
            "unknown-operator",
            "there are two operators in a row",
            SYMBOLS,
            pattern=r"[=!<>~]",
            examples=("a=='x'", "a<>'x'", "a=>'x'", "a=<'x'", "a~='x'", "a= ='x'", "a>>'x'"),
        ),
        SyntaxRefusal(
            "encoded", "the text is still percent-encoded", DECODE, pattern=ENCODED, examples=("a=%27x%27", "a=%20'x'")
        ),
        SyntaxRefusal(
            "value-unquoted",
            "the value is not quoted",
            "every value is in single quotes, numbers and dates too",
            examples=(
                "a=active",
                "a=1",
                "a>2026-01-01",
                "a=true",
                "a=é",
                "a=(x)",
                "a= x",
                "a=null",
                "a=N'x'",
                "a=-1",
                "a=.5",
                "a=\t'x'",
            ),
        ),
    ),
    ClausePart.JOIN: (
        SyntaxRefusal(
            "clause-missing",
            "a clause is missing at the end",
            pattern=r"(AND|OR) *\Z",
            examples=("a='x' AND", "a='x'OR"),
        ),
        SyntaxRefusal(
            "join-spaces",
            "AND and OR need a space on both sides",
            pattern=r"(?:AND|OR)\b|(?<= )(?:AND|OR)",
            examples=("a='x'AND b='y'", "a='x' AND\tb='y'", "a='x' ANDb='y'", "a='x' OR'y'", "a='x'OR(b='y')"),
        ),
        SyntaxRefusal(
            "quote-inside",
            "the value ended at the quote before this",
            DOUBLE,
            pattern=r"(?<=')[^ )&|,;+]",
            examples=("familyName='O'Brien'", "a='x'y", "a='x'ANDy'", "a='x'\"", "a='it's' AND b='y'"),
        ),
        SyntaxRefusal(
            "join-case",
            "{found} is written in capitals: AND, OR",
            pattern=r"(?i)(and|or)\b",
            examples=("a='x' and b='y'", "a='x' Or b='y'", "a='x' or", "a='x' oR\tb='y'"),
        ),
        SyntaxRefusal(
            "join-symbol",
            "clauses are joined by AND or by OR",
            pattern=r"[&|,;+]",
            examples=("a='x' && b='y'", "a='x',b='y'", "a='x';", "a='x' | b='y'", "a='x'+AND+b='y'"),
        ),
        SyntaxRefusal(
            "parenthesis",
            "there are no parentheses in this language",
            NO_PARENTHESES,
            pattern=r"[()]",
            examples=("a='x')", "a='x' )"),
        ),
        SyntaxRefusal(
            "encoded", "the text is still percent-encoded", DECODE, pattern=ENCODED, examples=("a='x' %20AND%20b='y'",)
        ),
        SyntaxRefusal(
            "join-missing",
            "{found} cannot follow a clause",
            "clauses are joined by AND or by OR, in capitals",
            examples=(
                "a='x' b='y'",
                "a='x' XOR b='y'",
                "a='x' NOT b='y'",
                "a='x' =",
                "a='x' 'y'",
                "a='x' \t",
                "a='x' .",
            ),
        ),
    ),
}
"""The refusals of each expected part, in the order in which they are tried."""

_COMPILED = {part: tuple((re.compile(row.pattern), row) for row in rows) for part, rows in SYNTAX_REFUSALS.items()}
_WORD = re.compile(r"\w{1,24}|.?", re.DOTALL)


def explain(text: str, part: ClausePart, column: int, symbols: tuple[str, ...]) -> FilterError:
    """Make the error for a text that the parser cannot read beyond a position.

    Args:
        text: The whole text.
        part: The part of a clause that the parser expected.
        column: The position: an offset, counted from 0.
        symbols: The operators of the dialect, as they are written.

    Returns:
        The error, to be raised.
    """
    column = column if text.strip(" ") else 0
    row = next(row for pattern, row in _COMPILED[part] if pattern.match(text, column))
    expected = symbols if part is ClausePart.OPERATOR else part.value
    found = _describe_found(text, column)
    return build(row, text=text, column=column, expected=expected, found=found, symbols=" ".join(symbols))


def _describe_found(text: str, column: int) -> str:
    """Return the word or the character at a position, in printable form."""
    word = _WORD.match(text, column)
    found = word[0] if word else ""
    return found if found.isprintable() else f"U+{ord(found):04X}"
