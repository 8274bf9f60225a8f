"""Extra operators and functions, which a dialect adds to the seven predicates.

Each of them stands for an expression of the seven predicates, which `check` puts in its place. So no back end knows of
them, and each has one meaning on all back ends.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from oneroster_filter.builder import F
from oneroster_filter.nodes import Expr, Operator

Expansion: TypeAlias = Callable[[F, str], Expr]
"""Returns the expression that a clause stands for, from its field and its value as it is written. The value is not yet
checked: the clauses of the expression are."""

OPERATOR_WORD = re.compile(r"[A-Za-z]+")
OPERATOR_SIGNS = re.compile(r"[!#$*/:<=>?@^~]+")
FUNCTION_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
JOINS = ("AND", "OR")


@dataclass(frozen=True, slots=True, eq=False)
class ExtraOperator:
    """An operator that a dialect adds.

    Args:
        value: How a filter writes it: a word (`in`), or signs (`!~`).
        expand: Makes the expression that a clause with this operator stands for.

    Raises:
        ValueError: The operator is neither a word nor signs, or the language already has it.
    """

    value: str
    expand: Expansion

    def __post_init__(self) -> None:
        is_written = OPERATOR_WORD.fullmatch(self.value) or OPERATOR_SIGNS.fullmatch(self.value)
        if not is_written or self.value in (*JOINS, *(operator.value for operator in Operator)):
            raise ValueError(f"an extra operator is a new word or new signs, not {self.value!r}")


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function of one field that a dialect adds: `year(birthDate)>='2010'`.

    Args:
        name: Its name in a filter.
        expansions: For each operator that the function has, the expression that a clause stands for.

    Raises:
        ValueError: The name is not made of letters, digits and underscores.
    """

    name: str
    expansions: Mapping[Operator, Expansion]

    def __post_init__(self) -> None:
        if not FUNCTION_NAME.fullmatch(self.name):
            raise ValueError(f"the name of a function has letters, digits and _, unlike {self.name!r}")

    def __call__(self, field: str) -> F:
        """Return the function of a field, to be compared as `F` is: `year("birthDate") >= "2010"`."""
        return F(field, self)
