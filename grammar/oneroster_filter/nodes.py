"""The nodes of an expression tree: frozen, hashable, comparable.

The language has no parentheses, so every expression is a clause, an `And` of clauses, or an `Or` of clauses and `And`s.
Nodes have any number of operands rather than two, so no tree is deeper, and each expression has one tree and one text.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from enum import Enum
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeAlias, TypeVar, cast

from oneroster_filter.refusals import refuse

if TYPE_CHECKING:
    from oneroster_filter.extensions import ExtraOperator, Function

FIELD_NAME = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")
"""The syntax of a field: names joined by dots. It must equal the terminal FIELD of `filter.lark`."""


class Operator(Enum):
    """The seven predicates of the standard. The value of each member is its symbol."""

    EQUAL = "="
    NOT_EQUAL = "!="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="
    LESS = "<"
    LESS_OR_EQUAL = "<="
    CONTAINS = "~"


class Position(NamedTuple):
    """The position of a clause: the whole text, and the offset of each part in it, counted from 0."""

    text: str
    field: int
    operator: int
    value: int


class Joined:
    """The base class of the nodes of an unchecked expression, which `&` and `|` join."""

    __slots__ = ()

    def __and__(self, other: "Expr") -> "Expr":
        return all_of(cast("Expr", self), other)

    def __or__(self, other: "Expr") -> "Expr":
        return any_of(cast("Expr", self), other)


@dataclass(frozen=True, slots=True)
class Clause(Joined):
    """One comparison as it is written, before its field is known.

    Args:
        field: The field, with its dots: `class.sourcedId`.
        operator: The operator: one of the seven, or an extra one of a dialect.
        value: The value to compare with, without quotes.
        position: The position in the parsed text; comparison and hash ignore it.
        function: The function of a dialect around the field; None for the field itself.

    Raises:
        ExpressionError: The field is not a valid name.
        FilterSyntaxError: The value contains a NUL, or half of a surrogate pair.
    """

    field: str
    operator: "Operator | ExtraOperator"
    value: str
    position: Position | None = dataclass_field(default=None, compare=False, repr=False)
    function: "Function | None" = None

    def __post_init__(self) -> None:
        if not FIELD_NAME.fullmatch(self.field):
            raise refuse("not-a-field-name", field=self.field)
        refuse_bad_characters(self.value)

    @property
    def path(self) -> tuple[str, ...]:
        """The names that lead to the field: `("class", "sourcedId")`."""
        return tuple(self.field.split("."))

    @property
    def subject(self) -> str:
        """What the clause compares, as it is written: the field, or the function with the field."""
        return self.field if self.function is None else f"{self.function.name}({self.field})"


Leaf = TypeVar("Leaf")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class And(Joined, Generic[Leaf]):
    """True if every operand is true.

    Args:
        operands: Two clauses or more, in the order in which they are written. In a checked expression, an operand may
            be an `Or`: an extra operator of a dialect stands for it.

    Raises:
        ExpressionError: There are fewer than two operands, one is an `And`, or one is an `Or` of unchecked clauses.
    """

    operands: "tuple[Leaf | Or[Leaf], ...]"

    def __post_init__(self) -> None:
        _refuse_shape(self.operands, And)
        if any(_needs_parentheses(operand) for operand in self.operands):
            raise refuse("operand-inside")


@dataclass(frozen=True, slots=True)
class Or(Joined, Generic[Leaf]):
    """True if any operand is true.

    Args:
        operands: Two clauses or `And`s, or more, in the order in which they are written.

    Raises:
        ExpressionError: There are fewer than two operands, or one is an `Or`.
    """

    operands: tuple[Leaf | And[Leaf], ...]

    def __post_init__(self) -> None:
        _refuse_shape(self.operands, Or)


Tree: TypeAlias = Leaf | And[Leaf] | Or[Leaf]
"""The shape of an expression with any type of clauses."""

Expr: TypeAlias = Clause | And[Clause] | Or[Clause]
"""What `parse` returns."""


def all_of(*operands: Tree[Leaf]) -> Tree[Leaf]:
    """Join expressions by AND. Operands that are an `And` become part of one `And`.

    Args:
        operands: One or more expressions.

    Returns:
        The `And`, or the operand itself if there is only one.

    Raises:
        ExpressionError: An operand is an `Or` of unchecked clauses, for which the language would need parentheses; or
            there is no operand.
    """
    flat: list[Leaf | Or[Leaf]] = []
    for operand in operands:
        if _needs_parentheses(operand):
            raise refuse("or-inside-and")
        flat += operand.operands if isinstance(operand, And) else (operand,)
    return And(tuple(flat)) if len(flat) != 1 else flat[0]


def any_of(*operands: Tree[Leaf]) -> Tree[Leaf]:
    """Join expressions by OR. Operands that are an `Or` become part of one `Or`.

    Args:
        operands: One or more expressions.

    Returns:
        The `Or`, or the operand itself if there is only one.

    Raises:
        ExpressionError: There is no operand.
    """
    flat: list[Leaf | And[Leaf]] = []
    for operand in operands:
        flat += operand.operands if isinstance(operand, Or) else (operand,)
    return Or(tuple(flat)) if len(flat) != 1 else flat[0]


def fold_tree(
    expr: Tree[Leaf],
    leaf: Callable[[Leaf], Result],
    every: Callable[[Sequence[Result]], Result],
    some: Callable[[Sequence[Result]], Result],
) -> Result:
    """Convert an expression into something else, from the clauses upwards.

    Args:
        expr: An expression, checked or not.
        leaf: Converts a clause.
        every: Combines the converted operands of an `And`.
        some: Combines the converted operands of an `Or`.

    Returns:
        The converted expression.
    """
    if isinstance(expr, Or):
        return some([fold_tree(operand, leaf, every, some) for operand in expr.operands])
    if isinstance(expr, And):
        return every([fold_tree(operand, leaf, every, some) for operand in expr.operands])
    return leaf(expr)


def clauses(expr: Tree[Leaf]) -> tuple[Leaf, ...]:
    """List the clauses of an expression in the order in which they are written.

    Args:
        expr: An expression, checked or not.

    Returns:
        Its clauses, at least one.
    """
    if isinstance(expr, (And, Or)):
        return tuple(clause for operand in expr.operands for clause in clauses(operand))
    return (expr,)


def refuse_bad_characters(text: str) -> None:
    """Refuse characters that databases cannot store or UTF-8 cannot encode.

    Args:
        text: The text of a filter, or of one value.

    Raises:
        FilterSyntaxError: The text contains a NUL character, or half of a surrogate pair.
    """
    if "\0" in text:
        raise refuse("nul", column=text.index("\0"), text=text)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise refuse("not-unicode", column=error.start, text=text) from None


def _needs_parentheses(operand: object) -> bool:
    """Whether an operand of an AND is an OR of unchecked clauses, which has no text without parentheses."""
    return isinstance(operand, Or) and isinstance(clauses(operand)[0], Clause)


def _refuse_shape(operands: Sequence[object], inner: type) -> None:
    if len(operands) < 2:
        raise refuse("one-operand")
    for operand in operands:
        if isinstance(operand, inner):
            raise refuse("operand-inside")
