"""Dialects: other limits than those of the standard, extra operators, and functions.

Provisional: these names and their arguments may change with any minor version.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from oneroster_filter.nodes import Expr, ExtraOperator, Function
from oneroster_filter.parser import MAX_CLAUSES, MAX_LENGTH, Grammar, make_grammar, parse_with, require_limits


@dataclass(frozen=True, eq=False)
class Dialect:
    """The rules by which texts are parsed. Make it once and keep it; `parse` itself has the rules of the standard.

    Args:
        max_clauses: The most clauses to accept, as they are written. With more than two, AND binds tighter than OR.
        max_length: The most characters to accept.
        operators: The operators that the dialect has beside the seven predicates.
        functions: The functions that a filter may apply to a field.

    Raises:
        ValueError: A limit is below 1, or two operators or two functions are written alike.
    """

    max_clauses: int = MAX_CLAUSES
    max_length: int = MAX_LENGTH
    operators: Sequence[ExtraOperator] = ()
    functions: Sequence[Function] = ()
    _grammar: Grammar = field(init=False, repr=False)

    def __post_init__(self) -> None:
        require_limits(self.max_length, self.max_clauses)
        for written in ([one.value for one in self.operators], [one.name for one in self.functions]):
            if len(set(written)) != len(written):
                raise ValueError(f"two operators or functions of a dialect are written alike: {', '.join(written)}")
        object.__setattr__(self, "_grammar", make_grammar(self.operators, self.functions))

    def parse(self, text: str) -> Expr:
        """Parse a filter of this dialect. `check` puts in place of extra operators and functions what they stand for.

        Args:
            text: The filter, percent-decoded: `role in 'teacher,aide' AND status='active'`.

        Returns:
            A `Clause`, an `And` or an `Or`: frozen, hashable, and equal for texts that differ only in spaces.

        Raises:
            FilterSyntaxError: The text is not in the language of the dialect.
            LimitError: The text is longer, or has more clauses, than the dialect accepts.
        """
        return parse_with(text, self.max_length, self.max_clauses, self._grammar)


__all__ = ["Dialect", "ExtraOperator", "Function"]
