"""A lexer for Lark: one regular expression, made of the terminals of `filter.lark`.

Lark's own lexers count lines and keep a scanner for each state of the parser. A filter has one line and five terminals,
so this lexer does half the work. It never fails: other text becomes UNKNOWN tokens, which the parser never expects.
"""

import re
from collections.abc import Iterator

from lark import Token
from lark.common import LexerConf
from lark.lexer import Lexer

UNKNOWN = "UNKNOWN"
"""The type of a token for a character that begins no terminal."""


class FilterLexer(Lexer):
    """A lexer for Lark.

    Args:
        conf: The terminals of the grammar, and the names of the ignored ones.
    """

    def __init__(self, conf: LexerConf) -> None:
        patterns = {terminal.name: terminal.pattern.to_regexp() for terminal in conf.terminals}
        ignored = "|".join(patterns.pop(name) for name in conf.ignore)
        ranked = sorted(conf.terminals, key=lambda terminal: -terminal.priority)
        names = [terminal.name for terminal in ranked if terminal.name in patterns]
        tokens = "|".join(f"({patterns[name]})" for name in names)
        self._names = ("", *names, UNKNOWN)
        # The pattern matches the end too. Otherwise the search would retry from each of the spaces before the end.
        self._find = re.compile(rf"(?:{ignored})?+(?:{tokens}|([\s\S])|\Z)").finditer

    def lex(self, text: str) -> Iterator[Token]:  # type: ignore[override]
        """Yield the tokens of a text, in order.

        Args:
            text: The text of a filter.

        Returns:
            The tokens, each with its `start_pos`, but without line numbers.
        """
        names = self._names
        for match in self._find(text):
            index = match.lastindex
            if index is not None:
                yield Token(names[index], match[index], match.start(index))
