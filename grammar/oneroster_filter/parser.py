"""Parses filters: Lark with the grammar `filter.lark`. `syntax_refusals.py` explains texts that it cannot parse.

The parser gets the tokens one by one, so that it stops at the first clause beyond the limit, however long the text is.

A consumer asks the same question with other values. So `parse` caches the expression of a *shape*, which is the text
with empty values, and puts the values of the text into it. The cache holds no value.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from lark import Lark, Tree, UnexpectedToken
from lark.lexer import PatternRE, TerminalDef

from oneroster_filter.errors import LimitError
from oneroster_filter.extensions import ExtraOperator, Function
from oneroster_filter.lexer import FilterLexer
from oneroster_filter.nodes import And, Clause, Expr, Operator, Or, Position, fold_tree, refuse_bad_characters
from oneroster_filter.refusals import refuse
from oneroster_filter.syntax_refusals import ClausePart, explain

MAX_LENGTH = 4096
"""The default limit in characters: it fits into a URL everywhere, and is many times what people write."""

MAX_CLAUSES = 2
"""The default limit of clauses: the number that the standard defines."""

CACHED_SHAPES = 1024
"""The number of shapes that `parse` caches: the filters of an ordinary day, in at most a few megabytes."""

LONGEST_CACHED_SHAPE = 512
"""The longest shape to cache, in characters. Longer ones are rare, and would let a client fill the memory."""

_VALUE = re.compile(r"'([^']*+(?:''[^']*+)*+)'")
"""The terminal VALUE of the grammar, with the value as a group."""


@dataclass(frozen=True, eq=False)
class Grammar:
    """The grammar `filter.lark`, or that of a dialect.

    Args:
        lark: The parser.
        operators: The operators by the way they are written.
        functions: The functions by name.
    """

    lark: Lark
    operators: Mapping[str, Operator | ExtraOperator]
    functions: Mapping[str, Function]


def make_grammar(operators: Sequence[ExtraOperator] = (), functions: Sequence[Function] = ()) -> Grammar:
    """Make a grammar: that of `filter.lark`, with more alternatives of the terminals OPERATOR and FIELD.

    Args:
        operators: Operators beside the seven predicates.
        functions: Functions of a field.

    Returns:
        The grammar.
    """
    known: dict[str, Operator | ExtraOperator] = {one.value: one for one in (*Operator, *operators)}

    def extend(terminal: TerminalDef) -> None:
        if terminal.name == "OPERATOR" and operators:
            terminal.pattern = PatternRE(_write_operators(known))
            # A word is an operator only before a value; there, the terminal FIELD would match it, too.
            terminal.priority = 1
        if terminal.name == "FIELD" and functions:
            names = "|".join(function.name for function in functions)
            field = terminal.pattern.value
            terminal.pattern = PatternRE(rf"(?:{names})\( *{field} *\)|{field}")

    lark = Lark.open_from_package(
        __package__, "filter.lark", start="any_of", parser="lalr", lexer=FilterLexer, edit_terminals=extend
    )
    return Grammar(lark, known, {function.name: function for function in functions})


def _write_operators(known: Iterable[str]) -> str:
    """Return the pattern of operators, the longest first. A word has a space before it and a value after it."""
    longest_first = sorted(known, key=len, reverse=True)
    return "|".join(rf"(?<= ){one}(?= *')" if one.isalpha() else re.escape(one) for one in longest_first)


_STANDARD = make_grammar()
_PARTS = {
    "FIELD": ClausePart.FIELD,
    "OPERATOR": ClausePart.OPERATOR,
    "VALUE": ClausePart.VALUE,
    "_AND": ClausePart.JOIN,
    "_OR": ClausePart.JOIN,
}
_JOINS = frozenset({"_AND", "_OR"})


def parse(text: str, *, max_length: int = MAX_LENGTH, max_clauses: int = MAX_CLAUSES) -> Expr:
    """Parse a filter. `check` then checks its fields, operators and values.

    All threads share a cache of the latest shapes of up to `LONGEST_CACHED_SHAPE` characters, so that parsing the same
    filter with any values costs little.

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
    return parse_with(text, max_length, max_clauses, _STANDARD)


def parse_with(text: str, max_length: int, max_clauses: int, grammar: Grammar) -> Expr:
    """Parse a filter by a grammar, from the cache if possible; see `parse`."""
    if not isinstance(text, str):
        raise refuse("not-text", found=type(text).__name__)
    if len(text) <= max_length:
        refuse_bad_characters(text)
        # Between the values stand the parts of the shape.
        parts = _VALUE.split(text)
        shape = "''".join(parts[::2])
        found = _parse_shape(shape, max_clauses, grammar) if len(shape) <= LONGEST_CACHED_SHAPE else None
        if found is not None:
            return _put_values(found, text, parts[1::2])
    return parse_uncached(text, max_length, max_clauses, grammar)


@lru_cache(maxsize=CACHED_SHAPES)
def _parse_shape(shape: str, max_clauses: int, grammar: Grammar) -> Expr | None:
    """Parse a shape. None if it is refused: the refusal must name places of the text."""
    try:
        return _parse(shape, max_clauses, grammar)
    except (UnexpectedToken, LimitError):
        return None


def _put_values(shape: Expr, text: str, values: Sequence[str]) -> Expr:
    """Return the expression of a text: that of its shape, with the text's values and positions."""
    left = iter(values)
    shift = 0

    def put_value(clause: Clause) -> Clause:
        nonlocal shift
        # A parsed clause has a position.
        place = cast("Position", clause.position)
        position = Position(text, place.field + shift, place.operator + shift, place.value + shift)
        value = next(left)
        shift += len(value)
        return Clause(clause.field, clause.operator, value.replace("''", "'"), position, clause.function)

    expr: Expr = fold_tree(shape, put_value, _join_all, _join_any)
    return expr


def _join_all(operands: Sequence[Any]) -> Expr:
    return And(tuple(operands))


def _join_any(operands: Sequence[Any]) -> Expr:
    return Or(tuple(operands))


def parse_uncached(text: str, max_length: int, max_clauses: int, grammar: Grammar = _STANDARD) -> Expr:
    """Parse a filter without the cache; see `parse`."""
    if len(text) > max_length:
        raise refuse("too-long", text=text, column=max_length, length=len(text), limit=max_length)
    refuse_bad_characters(text)
    try:
        return _parse(text, max_clauses, grammar)
    except UnexpectedToken as error:
        # Lark gives the end token the position of the last token.
        column = len(text) if error.token.type == "$END" else error.token.start_pos or 0
        part = next(_PARTS[terminal] for terminal in error.expected if terminal in _PARTS)
        raise explain(text, part, column, tuple(grammar.operators)) from None


def _parse(text: str, max_clauses: int, grammar: Grammar) -> Expr:
    parsing = grammar.lark.parse_interactive(text)
    clauses_left = max_clauses
    token = None
    for token in parsing.iter_parse():
        if token.type in _JOINS:
            clauses_left -= 1
            if not clauses_left:
                raise refuse("too-many-clauses", text=text, column=token.start_pos, limit=max_clauses)
    tree = parsing.feed_eof(token)  # type: ignore[no-untyped-call]
    return _build_or(tree, text, grammar)


def _build_or(tree: Tree[Any], text: str, grammar: Grammar) -> Expr:
    if tree.data == "any_of":
        return Or(tuple([_build_and(child, text, grammar) for child in tree.children]))
    return _build_and(tree, text, grammar)


def _build_and(tree: Tree[Any], text: str, grammar: Grammar) -> Clause | And[Clause]:
    if tree.data == "all_of":
        return And(tuple([_build_clause(child, text, grammar) for child in tree.children]))
    return _build_clause(tree, text, grammar)


def _build_clause(tree: Tree[Any], text: str, grammar: Grammar) -> Clause:
    subject, operator, value = cast("list[Any]", tree.children)
    position = Position(text, subject.start_pos, operator.start_pos, value.start_pos)
    function, _, field = subject.value.rstrip(" )").rpartition("(")
    return Clause(
        field.lstrip(" "),
        grammar.operators[operator.value],
        value.value[1:-1].replace("''", "'"),
        position,
        grammar.functions.get(function),
    )
