"""The values an expression is made of: frozen, hashable, comparable.

The language has no parentheses, so every expression is an `Or` of `And`s of clauses, or less. The nodes hold any number
of operands rather than two: nothing nests deeper, and each expression has one tree and one text.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from enum import Enum
from typing import Generic, NamedTuple, TypeAlias, TypeVar, cast

from oneroster_filter.refusals import refuse

FIELD_NAME = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")
"""A field as it is written: names joined by dots. The terminal FIELD of `filter.lark` says the same."""


class Operator(Enum):
    """The seven predicates of the standard, each valued as it is written."""

    EQUAL = "="
    NOT_EQUAL = "!="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="
    LESS = "<"
    LESS_OR_EQUAL = "<="
    CONTAINS = "~"


class Position(NamedTuple):
    """Where a clause stood: the whole text, and the offset of each part in it, counted from 0."""

    text: str
    field: int
    operator: int
    value: int


class Joined:
    """What every node of an unchecked expression can do: be joined to others by `&` and `|`."""

    __slots__ = ()

    def __and__(self, other: "Expr") -> "Expr":
        return all_of(cast("Expr", self), other)

    def __or__(self, other: "Expr") -> "Expr":
        return any_of(cast("Expr", self), other)


@dataclass(frozen=True, slots=True)
class Clause(Joined):
    """One comparison, as it is written: nothing is known yet of what kind the field is.

    Args:
        field: The field, with its dots: `class.sourcedId`.
        operator: How it is compared.
        value: What it is compared with, without quotes.
        position: Where it was read; it takes no part in comparing or hashing.

    Raises:
        ExpressionError: The field is not a name.
        FilterSyntaxError: The value holds a NUL, or half a surrogate pair.
    """

    field: str
    operator: Operator
    value: str
    position: Position | None = dataclass_field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not FIELD_NAME.fullmatch(self.field):
            raise refuse("not-a-field-name", field=self.field)
        refuse_bad_characters(self.value)

    @property
    def path(self) -> tuple[str, ...]:
        """The names that lead to the field: `("class", "sourcedId")`."""
        return tuple(self.field.split("."))


Leaf = TypeVar("Leaf")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class And(Joined, Generic[Leaf]):
    """True where every operand is.

    Args:
        operands: Two clauses or more, in the order in which they are written.

    Raises:
        ExpressionError: Fewer than two, or an operand that is not a clause.
    """

    operands: tuple[Leaf, ...]

    def __post_init__(self) -> None:
        _refuse_shape(self.operands, (And, Or))


@dataclass(frozen=True, slots=True)
class Or(Joined, Generic[Leaf]):
    """True where any operand is.

    Args:
        operands: Two clauses or `And`s, or more, in the order in which they are written.

    Raises:
        ExpressionError: Fewer than two, or an operand that is itself an `Or`.
    """

    operands: tuple[Leaf | And[Leaf], ...]

    def __post_init__(self) -> None:
        _refuse_shape(self.operands, (Or,))


Tree: TypeAlias = Leaf | And[Leaf] | Or[Leaf]
"""The shape of an expression, whatever its clauses are."""

Expr: TypeAlias = Clause | And[Clause] | Or[Clause]
"""What `parse` returns."""


def all_of(*operands: Tree[Leaf]) -> Leaf | And[Leaf]:
    """Join by AND; operands that are joined by AND already become part of one `And`.

    Args:
        operands: One or more expressions.

    Returns:
        The `And`, or the operand itself where there is only one.

    Raises:
        ExpressionError: An operand is an `Or`: the language has no parentheses to keep it together.
    """
    flat: list[Leaf] = []
    for operand in operands:
        if isinstance(operand, Or):
            raise refuse("or-inside-and")
        flat += operand.operands if isinstance(operand, And) else (operand,)
    return And(tuple(flat)) if len(flat) != 1 else flat[0]


def any_of(*operands: Tree[Leaf]) -> Tree[Leaf]:
    """Join by OR; operands that are joined by OR already become part of one `Or`.

    Args:
        operands: One or more expressions.

    Returns:
        The `Or`, or the operand itself where there is only one.

    Raises:
        ExpressionError: No operand at all.
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
    """Turn an expression into something else, from its clauses upwards.

    Args:
        expr: An expression, or a checked one.
        leaf: What a clause becomes.
        every: What the operands of an `And` become together.
        some: What the operands of an `Or` become together.

    Returns:
        What the whole expression became.
    """
    if isinstance(expr, Or):
        return some([fold_tree(operand, leaf, every, some) for operand in expr.operands])
    if isinstance(expr, And):
        return every([leaf(operand) for operand in expr.operands])
    return leaf(expr)


def clauses(expr: Tree[Leaf]) -> tuple[Leaf, ...]:
    """Every clause of an expression, checked or not, in the order in which they are written.

    Args:
        expr: An expression.

    Returns:
        Its clauses, one at least.
    """
    if isinstance(expr, (And, Or)):
        return tuple(clause for operand in expr.operands for clause in clauses(operand))
    return (expr,)


def refuse_bad_characters(text: str) -> None:
    """Refuse what a database or a network cannot carry.

    Args:
        text: The text of a filter, or of one value.

    Raises:
        FilterSyntaxError: A NUL character, or half a surrogate pair.
    """
    if "\0" in text:
        raise refuse("nul", column=text.index("\0"), text=text)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise refuse("not-unicode", column=error.start, text=text) from None


def _refuse_shape(operands: Sequence[object], inner: tuple[type, ...]) -> None:
    if len(operands) < 2:
        raise refuse("one-operand")
    for operand in operands:
        if isinstance(operand, inner):
            raise refuse("operand-inside")
