"""Text to tokens, by one regular expression made of the terminals of `filter.lark`.

Lark's own lexers count lines and keep a scanner for every state of the parser; a filter has one line and five
terminals, so this one does half the work. It never fails: what is no token becomes one that the parser expects nowhere.
"""

import re
from collections.abc import Iterator

from lark import Token
from lark.common import LexerConf
from lark.lexer import Lexer

UNKNOWN = "UNKNOWN"
"""The type of the token that stands for text which is no token."""


class FilterLexer(Lexer):
    """A lexer for Lark.

    Args:
        conf: The terminals of the grammar, and which of them are ignored.
    """

    def __init__(self, conf: LexerConf) -> None:
        patterns = {terminal.name: terminal.pattern.to_regexp() for terminal in conf.terminals}
        ignored = "|".join(patterns.pop(name) for name in conf.ignore)
        ranked = sorted(conf.terminals, key=lambda terminal: -terminal.priority)
        names = [terminal.name for terminal in ranked if terminal.name in patterns]
        tokens = "|".join(f"({patterns[name]})" for name in names)
        self._names = ("", *names, UNKNOWN)
        # The end is matched too, so that spaces before it are passed over once and not from each of them again.
        self._find = re.compile(rf"(?:{ignored})?+(?:{tokens}|([\s\S])|\Z)").finditer

    def lex(self, text: str) -> Iterator[Token]:  # type: ignore[override]
        """Yield the tokens of a text, in order.

        Args:
            text: The text of a filter.

        Returns:
            The tokens, each with its `start_pos`; no line is counted.
        """
        names = self._names
        for match in self._find(text):
            index = match.lastindex
            if index is not None:
                yield Token(names[index], match[index], match.start(index))
