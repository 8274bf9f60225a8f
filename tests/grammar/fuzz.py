"""Throw texts at the parser: whatever comes, an expression or a `FilterError` comes back, and soon.

`python -m tests.grammar.fuzz 1000000` is the long run, which measures too; `test_fuzz.py` is a short one. Texts are
made, by bytes from hypothesis, of pieces of the language, of the malformed examples, and of any characters at all.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from oneroster_filter import F, FilterError, Operator, check, clauses, parse, to_text
from oneroster_filter.dialect import ExtraOperator, Function
from oneroster_filter.nodes import refuse_bad_characters
from oneroster_filter.parser import Grammar, make_grammar, parse_by_lark, read_steps
from oneroster_filter.typing import Expr

from . import refused
from .samples import TYPES

T = TypeVar("T")

BATCH = 20_000
"""One run of hypothesis remembers every text it made; the long run is many of these."""

LONGEST_MS = 10.0
"""No text may take longer. A text that takes longest is timed again, because machines pause."""

EXAMPLES = sorted(
    {
        text
        for rows in (refused.EXAMPLES.items(), *refused.SYNTAX_EXAMPLES.values())
        for _, texts in rows
        for text in texts
    }
)
PIECES = (
    *(
        "status",
        "enabledUser",
        "dateLastModified",
        "grades",
        "roles.role",
        "metadata.x",
        "birthDate",
        "a.",
        ".",
        "é",
        "x",
    ),
    *(
        "=",
        "!=",
        ">",
        ">=",
        "<",
        "<=",
        "~",
        "==",
        "!",
        "eq",
        " ",
        "  ",
        "\t",
        "\n",
        "\0",
        "\ud800",
        "(",
        ")",
        "%27",
        "+",
    ),
    *(
        "'",
        "''",
        '"',
        "’",
        "'active'",
        "'true'",
        "'2026-01-01'",
        "'09,10'",
        "'O''Brien'",
        " AND ",
        " OR ",
        "AND",
        " and ",
        "&",
        " in ",
        "in",
        "!*",
        " a ",
        "year(",
        "x( ",
    ),
    *EXAMPLES,
)

FIELDS = (*(name for name in TYPES if "*" not in name), "metadata.x", "shoeSize")
OPERATORS = (*(operator.value for operator in Operator), " in ", "!*", " a ")
VALUES = (
    "active",
    "true",
    "false",
    "2026-11-21",
    "2026-11-21T02:00:00.000Z",
    "09,10",
    "",
    "it's",
    "Σ😀",
    "' AND x='",
    "%_/",
)
JOINS = (" AND ", " OR ", "  AND  ")


class Choices:
    """Choices made by bytes, so that hypothesis, which makes those, need not know the language.

    Args:
        data: The bytes; when they are used up, every choice is the first.
    """

    def __init__(self, data: bytes) -> None:
        self._data = iter(data)

    def number(self, below: int) -> int:
        """A number from 0 up to, and without, `below`."""
        return (next(self._data, 0) * 256 + next(self._data, 0)) % below

    def one_of(self, things: Sequence[T]) -> T:
        """One of some things."""
        return things[self.number(len(things))]


def soup(choices: Choices) -> str:
    """Pieces of the language in no order."""
    return "".join(choices.one_of(PIECES) for _ in range(choices.number(12)))


def sentence(choices: Choices) -> str:
    """A text that is in the language, and mostly means something."""

    def clause() -> str:
        value = choices.one_of(VALUES).replace("'", "''")
        return f"{choices.one_of(FIELDS)}{choices.one_of(OPERATORS)}'{value}'"

    return clause() + "".join(choices.one_of(JOINS) + clause() for _ in range(choices.number(2)))


def slip(choices: Choices) -> str:
    """A text in the language but for one character that is missing, added or another."""
    text = choices.one_of((sentence(choices), choices.one_of(EXAMPLES)))
    part = choices.number(len(text) + 1)
    return text[:part] + choices.one_of(("", *PIECES)) + text[part + choices.number(2) :]


def endless(choices: Choices) -> str:
    """One piece, again and again."""
    return choices.one_of((sentence(choices), choices.one_of(PIECES))) * choices.number(5000)


def anything(choices: Choices) -> str:
    """Any characters at all."""
    return "".join(chr(choices.number(65536)) for _ in range(choices.number(30)))


SORTS = (soup, sentence, slip, slip, sentence, endless, anything)


def make_text(data: bytes) -> str:
    """Make a text out of bytes."""
    choices = Choices(data)
    return choices.one_of(SORTS)(choices)


def read(text: str) -> Expr | None:
    """Read a text as a service would, to the last word of the error; None where it is refused."""
    try:
        expr = parse(text)
        check(expr, TYPES)
    except FilterError as error:
        str(error)
        return None
    return expr


def add_to_text(field: F, value: str) -> Expr:
    """An expansion; no text of this run is checked in a dialect."""
    return field == value


GRAMMARS = (
    make_grammar(),
    make_grammar([ExtraOperator("in", add_to_text), ExtraOperator("!*", add_to_text)]),
    make_grammar([ExtraOperator("a", add_to_text)], [Function("year", {}), Function("x", {})]),
)
"""The grammar of the standard, and those of dialects with words, signs and functions."""


def read_both_ways(text: str, grammar: Grammar) -> None:
    """The steps read the texts that Lark reads, and no others, with the same tree and positions."""
    limit = 3
    try:
        refuse_bad_characters(text)
    except FilterError:
        return
    by_steps = read_steps(text, limit, grammar)
    try:
        by_lark = parse_by_lark(text, limit, grammar)
    except FilterError:
        assert by_steps is None
        return
    assert by_steps is not None
    assert by_steps == by_lark
    assert [clause.position for clause in clauses(by_steps)] == [clause.position for clause in clauses(by_lark)]


def survive(text: str) -> bool:
    """Read a text; what is accepted must come back from its own text, and know where it stood."""
    expr = read(text)
    for grammar in GRAMMARS:
        read_both_ways(text, grammar)
    if expr is None:
        return False
    written = to_text(expr)
    assert parse(written, max_length=len(written)) == expr
    assert all(text[clause.position.field :].startswith(clause.field) for clause in clauses(expr))
    return True


def fuzz(count: int, seed_number: int, examine: Callable[[str], None]) -> None:
    """Examine texts.

    Args:
        count: How many.
        seed_number: Which ones: the same number makes the same texts.
        examine: What is done with each.
    """

    @seed(seed_number)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.binary(min_size=8, max_size=64))
    def run(data: bytes) -> None:
        examine(make_text(data))

    run()


def main(arguments: list[str]) -> int:
    """The long run: prints what it did, and returns 1 where a text took too long."""
    parser = argparse.ArgumentParser(description="Throw texts at the filter parser.")
    parser.add_argument("count", type=int, nargs="?", default=1_000_000)
    options = parser.parse_args(arguments)
    slowest, slow_text, seen, accepted = 0.0, "", 0, 0
    started = time.perf_counter()

    def examine(text: str) -> None:
        nonlocal slowest, slow_text, seen, accepted
        took = _timed(text)
        if took > slowest:
            took = min(took, *(_timed(text) for _ in range(5)))
        if took > slowest:
            slowest, slow_text = took, text
        seen += 1
        accepted += survive(text)

    for batch in range(0, options.count, BATCH):
        fuzz(min(BATCH, options.count - batch), batch, examine)
    print(
        f"{seen} texts, {accepted} of them accepted, in {time.perf_counter() - started:.0f} s: "
        "nothing was raised but FilterError"
    )
    print(f"slowest: {slowest:.2f} ms for {slow_text[:60]!r} ({len(slow_text)} characters)")
    return int(slowest > LONGEST_MS)


def _timed(text: str) -> float:
    started = time.perf_counter()
    read(text)
    return (time.perf_counter() - started) * 1000


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
