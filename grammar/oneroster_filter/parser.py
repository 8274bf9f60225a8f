"""Parses filters. Lark, with the grammar `filter.lark`, defines the language and refuses all other texts.

Lark's loop over tokens takes most of the time of a filter. So one regular expression, made of Lark's own terminals,
reads a well-formed filter clause by clause. A text that it cannot read goes to Lark, which finds the position where it
stops being a filter; `syntax_refusals.py` explains it. A property test holds both to the same trees and positions.
"""

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from lark import Lark, Tree, UnexpectedCharacters, UnexpectedToken
from lark.lexer import PatternRE, TerminalDef

from oneroster_filter.nodes import (
    And,
    Clause,
    Expr,
    ExtraOperator,
    Function,
    Operator,
    Or,
    Position,
    place_clause,
    refuse_bad_characters,
)
from oneroster_filter.refusals import refuse
from oneroster_filter.syntax_refusals import ClausePart, explain

MAX_LENGTH = 4096
"""The default limit in characters: it fits into a URL everywhere, and is many times what people write."""

MAX_CLAUSES = 2
"""The default limit of clauses: the number that the standard defines."""


@dataclass(frozen=True, eq=False)
class Grammar:
    """The grammar `filter.lark`, or that of a dialect.

    Args:
        lark: The parser.
        step: Matches a clause with the join after it, or with the end of the text.
        operators: The operators by the way they are written.
        functions: The functions by name.
    """

    lark: Lark
    step: re.Pattern[str]
    operators: Mapping[str, Operator | ExtraOperator]
    functions: Mapping[str, Function]


def make_grammar(operators: Sequence[ExtraOperator] = (), functions: Sequence[Function] = ()) -> Grammar:
    """Make a grammar: that of `filter.lark`, with more alternatives of the terminals OPERATOR and FIELD."""
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
        __package__, "filter.lark", start="any_of", parser="lalr", lexer="basic", edit_terminals=extend
    )
    return Grammar(lark, _make_step(lark), known, {function.name: function for function in functions})


def _make_step(lark: Lark) -> re.Pattern[str]:
    """Return the pattern of a clause and the join or the end after it, from the terminals of the parser.

    A terminal matches as in the lexer of Lark: it gives nothing back, and one of higher priority comes before it.
    """
    terminals = {terminal.name: terminal for terminal in lark.terminals}
    patterns = {name: terminal.pattern.to_regexp() for name, terminal in terminals.items()}
    spaces = "|".join(patterns[name] for name in lark.ignore_tokens)

    def write(name: str) -> str:
        before = [patterns[one] for one in _PARTS if terminals[one].priority > terminals[name].priority]
        refused = f"(?!{'|'.join(before)})" if before else ""
        return f"(?:{spaces})?+{refused}((?>{patterns[name]}))"

    joins = "|".join(write(name) for name in ("_AND", "_OR"))
    return re.compile(f"{write('FIELD')}{write('OPERATOR')}{write('VALUE')}(?:{joins}|(?:{spaces})?+\\Z)")


def _write_operators(known: Iterable[str]) -> str:
    """Return the pattern of operators, the longest first. A word has a space before it and a value after it."""
    longest_first = sorted(known, key=len, reverse=True)
    return "|".join(rf"(?<= ){one}(?= *')" if one.isalpha() else re.escape(one) for one in longest_first)


_PARTS = {
    "FIELD": ClausePart.FIELD,
    "OPERATOR": ClausePart.OPERATOR,
    "VALUE": ClausePart.VALUE,
    "_AND": ClausePart.JOIN,
    "_OR": ClausePart.JOIN,
}
_JOINS = frozenset({"_AND", "_OR"})
# The grammar of `filter.lark`, made for the first filter: it takes longer than to import the package, and many programs
# that import it never parse.
_find_standard = functools.cache(make_grammar)


def parse(text: str, *, max_length: int = MAX_LENGTH, max_clauses: int = MAX_CLAUSES) -> Expr:
    """Parse a filter. `check` then checks its fields, operators and values.

    Args:
        text: The filter, percent-decoded: `status='active' AND role='teacher'`.
        max_length: The most characters to accept.
        max_clauses: The most clauses to accept. With more than two, AND binds tighter than OR.

    Returns:
        A `Clause`, an `And` or an `Or`: frozen, hashable, and equal for texts that differ only in spaces.

    Raises:
        FilterSyntaxError: The text is not in the language.
        LimitError: The text is longer, or has more clauses, than accepted.
        ValueError: A limit is below 1.
    """
    if max_length < 1 or max_clauses < 1:
        require_limits(max_length, max_clauses)
    return parse_with(text, max_length, max_clauses, _find_standard())


def require_limits(max_length: int, max_clauses: int) -> None:
    """Raise ValueError where a limit is below 1."""
    for name, limit in (("max_length", max_length), ("max_clauses", max_clauses)):
        if limit < 1:
            raise ValueError(f"{name} is at least 1, not {limit}")


def parse_with(text: str, max_length: int, max_clauses: int, grammar: Grammar) -> Expr:
    """Parse a filter by a grammar; see `parse`."""
    if not isinstance(text, str):
        raise refuse("not-text", found=type(text).__name__)
    if len(text) > max_length:
        raise refuse("too-long", text=text, column=max_length, length=len(text), limit=max_length)
    refuse_bad_characters(text)
    expr = read_steps(text, max_clauses, grammar)
    return parse_by_lark(text, max_clauses, grammar) if expr is None else expr


def read_steps(text: str, max_clauses: int, grammar: Grammar) -> Expr | None:
    """Read a well-formed text clause by clause. None where it is not, or has too many clauses."""
    match, operators, functions = grammar.step.match, grammar.operators, grammar.functions
    end, every = 0, []
    some = []
    for _ in range(max_clauses):
        step = match(text, end)
        if step is None:
            return None
        subject, operator, value, and_, or_ = step.groups()
        position = Position(text, step.start(1), step.start(2), step.start(3))
        value = value[1:-1]
        if "'" in value:
            value = value.replace("''", "'")
        function = None
        if functions and subject[-1] == ")":
            name, _, subject = subject[:-1].partition("(")
            subject, function = subject.strip(" "), functions[name]
        every.append(place_clause(subject, operators[operator], value, position, function))
        end = step.end()
        if and_ is None:
            some.append(every[0] if len(every) == 1 else And(tuple(every)))
            every = []
            if or_ is None:
                return some[0] if len(some) == 1 else Or(tuple(some))
    return None


def parse_by_lark(text: str, max_clauses: int, grammar: Grammar) -> Expr:
    """Parse a filter by Lark, which finds why and where it refuses a text; see `parse`."""
    parsing = grammar.lark.parse_interactive(text)
    clauses_left = max_clauses
    token = None
    before = ""
    try:
        for token in parsing.iter_parse():
            # A join behind a join begins no clause: the parser refuses it.
            if token.type in _JOINS and before not in _JOINS:
                clauses_left -= 1
                if not clauses_left:
                    raise refuse("too-many-clauses", text=text, column=token.start_pos, limit=max_clauses)
            before = token.type
        tree = parsing.feed_eof(token)  # type: ignore[no-untyped-call]
    except (UnexpectedToken, UnexpectedCharacters) as error:
        is_end = isinstance(error, UnexpectedToken) and error.token.type == "$END"
        column = len(text) if is_end else error.pos_in_stream or 0
        choices = parsing.choices()  # type: ignore[no-untyped-call]
        part = next(_PARTS[name] for name in choices if name in _PARTS)
        raise explain(text, part, column, tuple(grammar.operators)) from None
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
