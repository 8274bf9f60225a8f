"""Parses filters: Lark with the grammar `filter.lark`. `syntax_refusals.py` explains texts that it cannot parse.

The parser gets the tokens one by one, so that it stops at the first clause beyond the limit, however long the text is.
"""

from functools import lru_cache
from typing import Any, cast

from lark import Lark, Tree, UnexpectedToken

from oneroster_filter.lexer import FilterLexer
from oneroster_filter.nodes import And, Clause, Expr, Operator, Or, Position, refuse_bad_characters
from oneroster_filter.refusals import refuse
from oneroster_filter.syntax_refusals import ClausePart, explain

MAX_LENGTH = 4096
"""The default limit in characters: it fits into a URL everywhere, and is many times what people write."""

MAX_CLAUSES = 2
"""The default limit of clauses: the number that the standard defines."""

CACHED_TEXTS = 1024
"""The number of texts that `parse` caches: the filters of an ordinary day, in at most a few megabytes."""

LONGEST_CACHED_TEXT = 512
"""The longest text to cache, in characters. Longer texts are rare, and would let a client fill the memory."""

_LARK = Lark.open_from_package(__package__, "filter.lark", start="any_of", parser="lalr", lexer=FilterLexer)
_PARTS = {
    "FIELD": ClausePart.FIELD,
    "OPERATOR": ClausePart.OPERATOR,
    "VALUE": ClausePart.VALUE,
    "_AND": ClausePart.JOIN,
    "_OR": ClausePart.JOIN,
}
_JOINS = frozenset({"_AND", "_OR"})
_OPERATORS = {operator.value: operator for operator in Operator}


def parse(text: str, *, max_length: int = MAX_LENGTH, max_clauses: int = MAX_CLAUSES) -> Expr:
    """Parse a filter. `check` then checks its fields, operators and values.

    All threads share a cache of the latest texts of up to `LONGEST_CACHED_TEXT` characters, so that parsing one again
    costs almost nothing.

    Args:
        text: The filter, percent-decoded: `status='active' AND role='teacher'`.
        max_length: The most characters to accept.
        max_clauses: The most clauses to accept. With more than two, AND binds tighter than OR.

    Returns:
        A `Clause`, an `And` or an `Or`: frozen, hashable, and equal for texts that differ only in spaces.

    Raises:
        FilterSyntaxError: The text is not in the language.
        LimitError: The text is longer, or has more clauses, than accepted.
    """
    if not isinstance(text, str):
        raise refuse("not-text", found=type(text).__name__)
    parse_text = _parse_cached if len(text) <= LONGEST_CACHED_TEXT else parse_uncached
    return parse_text(text, max_length, max_clauses)


def parse_uncached(text: str, max_length: int, max_clauses: int) -> Expr:
    """Parse a filter without the cache; see `parse`."""
    if len(text) > max_length:
        raise refuse("too-long", text=text, column=max_length, length=len(text), limit=max_length)
    refuse_bad_characters(text)
    parsing = _LARK.parse_interactive(text)
    clauses_left = max_clauses
    token = None
    try:
        for token in parsing.iter_parse():
            if token.type in _JOINS:
                clauses_left -= 1
                if not clauses_left:
                    raise refuse("too-many-clauses", text=text, column=token.start_pos, limit=max_clauses)
        tree = parsing.feed_eof(token)  # type: ignore[no-untyped-call]
    except UnexpectedToken as error:
        # Lark gives the end token the position of the last token.
        column = len(text) if error.token.type == "$END" else error.token.start_pos or 0
        part = next(_PARTS[terminal] for terminal in error.expected if terminal in _PARTS)
        raise explain(text, part, column) from None
    return _build_or(tree, text)


_parse_cached = lru_cache(maxsize=CACHED_TEXTS)(parse_uncached)


def _build_or(tree: Tree[Any], text: str) -> Expr:
    if tree.data == "any_of":
        return Or(tuple(_build_and(child, text) for child in tree.children))
    return _build_and(tree, text)


def _build_and(tree: Tree[Any], text: str) -> Clause | And[Clause]:
    if tree.data == "all_of":
        return And(tuple([_build_clause(child, text) for child in tree.children]))
    return _build_clause(tree, text)


def _build_clause(tree: Tree[Any], text: str) -> Clause:
    field, operator, value = cast("list[Any]", tree.children)
    position = Position(text, field.start_pos, operator.start_pos, value.start_pos)
    return Clause(field.value, _OPERATORS[operator.value], value.value[1:-1].replace("''", "'"), position)
