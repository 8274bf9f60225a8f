"""Text to expression: Lark reads `filter.lark`, and what it cannot read is explained by `syntax_refusals.py`.

Tokens are fed to the parser one by one, so that a clause too many ends the reading at once, however long the text.
"""

from functools import lru_cache
from typing import Any, cast

from lark import Lark, Tree, UnexpectedToken

from oneroster_filter.lexer import FilterLexer
from oneroster_filter.nodes import And, Clause, Expr, Operator, Or, Position, refuse_bad_characters
from oneroster_filter.refusals import refuse
from oneroster_filter.syntax_refusals import ClausePart, explain

MAX_LENGTH = 4096
"""The longest filter taken by default: what fits in a URL anywhere, and many times what people write."""

MAX_CLAUSES = 2
"""The most clauses taken by default: what the standard promises."""

CACHED_TEXTS = 1024
"""How many texts `parse` remembers: the filters of an ordinary day, in a few megabytes at worst."""

LONGEST_CACHED_TEXT = 512
"""Longer texts are read each time: they are few, and whoever sends them chooses how much would be remembered."""

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
    """Read a filter. Nothing is known yet of the fields: see `check`.

    The latest texts of up to `LONGEST_CACHED_TEXT` characters are remembered, for all threads together, so that reading
    one again costs next to nothing.

    Args:
        text: The filter, percent-decoded: `status='active' AND role='teacher'`.
        max_length: The most characters to take.
        max_clauses: The most clauses to take. With more than two, AND binds tighter than OR.

    Returns:
        A `Clause`, an `And` or an `Or`: frozen, hashable, and equal for texts that differ in spaces only.

    Raises:
        FilterSyntaxError: The text is not in the language.
        LimitError: It is longer, or has more clauses, than is taken.
    """
    if not isinstance(text, str):
        raise refuse("not-text", found=type(text).__name__)
    read_text = _parse_cached if len(text) <= LONGEST_CACHED_TEXT else parse_uncached
    return read_text(text, max_length, max_clauses)


def parse_uncached(text: str, max_length: int, max_clauses: int) -> Expr:
    """Read a filter without remembering it; see `parse`."""
    if len(text) > max_length:
        raise refuse("too-long", text=text, column=max_length, length=len(text), limit=max_length)
    refuse_bad_characters(text)
    reading = _LARK.parse_interactive(text)
    left = max_clauses
    token = None
    try:
        for token in reading.iter_parse():
            if token.type in _JOINS:
                left -= 1
                if not left:
                    raise refuse("too-many-clauses", text=text, column=token.start_pos, limit=max_clauses)
        tree = reading.feed_eof(token)  # type: ignore[no-untyped-call]
    except UnexpectedToken as error:
        # Lark gives the end of the text the position of the token before it.
        column = len(text) if error.token.type == "$END" else error.token.start_pos or 0
        part = next(_PARTS[terminal] for terminal in error.expected if terminal in _PARTS)
        raise explain(text, part, column) from None
    return _any_of(tree, text)


_parse_cached = lru_cache(maxsize=CACHED_TEXTS)(parse_uncached)


def _any_of(tree: Tree[Any], text: str) -> Expr:
    if tree.data == "any_of":
        return Or(tuple(_all_of(child, text) for child in tree.children))
    return _all_of(tree, text)


def _all_of(tree: Tree[Any], text: str) -> Clause | And[Clause]:
    if tree.data == "all_of":
        return And(tuple([_clause(child, text) for child in tree.children]))
    return _clause(tree, text)


def _clause(tree: Tree[Any], text: str) -> Clause:
    field, operator, value = cast("list[Any]", tree.children)
    position = Position(text, field.start_pos, operator.start_pos, value.start_pos)
    return Clause(field.value, _OPERATORS[operator.value], value.value[1:-1].replace("''", "'"), position)
