"""The nodes of an expression tree: frozen, hashable, comparable; and `F`, which makes them in Python.

The language has no parentheses, so every expression is a clause, an `And` of clauses, or an `Or` of clauses and `And`s.
Nodes have any number of operands rather than two, so no tree is deeper, and each expression has one tree and one text.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from datetime import UTC, date, datetime
from enum import Enum
from typing import Generic, NamedTuple, TypeAlias, TypeVar, cast

from oneroster_filter.refusals import refuse

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


Expansion: TypeAlias = "Callable[[F, str], Expr]"
"""Returns the expression that a clause stands for, from its field and its value as it is written. The value is not yet
checked: the clauses of the expression are. It refuses a value by a ValueError, whose message the error of the filter
shows."""

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


class Position(NamedTuple):
    """The position of a clause: the whole text, and the offset of each part in it, counted from 0."""

    text: str
    field: int
    operator: int
    value: int


class Node:
    """The base class of all nodes. They have no truth value: `and`, `or`, `not` and chained comparisons would drop a
    clause in silence."""

    __slots__ = ()

    def __bool__(self) -> bool:
        raise TypeError("an expression has no truth value: join clauses by & and |, each comparison in parentheses")


class Joined(Node):
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
    operator: Operator | ExtraOperator
    value: str
    position: Position | None = dataclass_field(default=None, compare=False, repr=False)
    function: Function | None = None

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


# What the parser has read needs no second check, which would take more time than reading it.
_set_field, _set_operator, _set_value, _set_position, _set_function = (
    getattr(Clause, name).__set__ for name in Clause.__slots__
)


def place_clause(
    field: str, operator: Operator | ExtraOperator, value: str, position: Position, function: Function | None
) -> Clause:
    """Return a clause of parts that the parser has read."""
    clause = object.__new__(Clause)
    _set_field(clause, field)
    _set_operator(clause, operator)
    _set_value(clause, value)
    _set_position(clause, position)
    _set_function(clause, function)
    return clause


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
    if isinstance(expr, (And, Or)):
        combine = some if isinstance(expr, Or) else every
        return _combine([fold_tree(operand, leaf, every, some) for operand in expr.operands], combine)
    return leaf(expr)


MOST_OPERANDS = 256
"""The operands that are combined at once: SQLite refuses an expression that is deeper than 1000, and a OR b OR c is as
deep as it has operands."""


def _combine(results: Sequence[Result], combine: Callable[[Sequence[Result]], Result]) -> Result:
    """Combine results, many of them in groups."""
    while len(results) > MOST_OPERANDS:
        starts = range(0, len(results), MOST_OPERANDS)
        results = [combine(results[start : start + MOST_OPERANDS]) for start in starts]
    return combine(results)


def require_clauses(expr: object, class_: type, stage: str) -> None:
    """Raise TypeError where an expression comes from another stage: its first clause is not of the class."""
    first = expr
    while isinstance(first, (And, Or)):
        first = first.operands[0]
    if not isinstance(first, class_):
        raise TypeError(f"the expression must be what `{stage}` returned, not {type(first).__name__}")


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


Plain: TypeAlias = str | bool | datetime | date | Sequence[str]
"""A value to compare with, in Python."""


class F:
    """A field to compare. Each comparison is a `Clause`; join clauses by `&` and `|`.

    Args:
        name: The field, with its dots: `F("class.sourcedId")`.
        function: The function of a dialect to compare, in place of the field itself.
    """

    __slots__ = ("_function", "_name")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, name: str, function: Function | None = None) -> None:
        self._name = name
        self._function = function

    def __eq__(self, value: Plain) -> Clause:  # type: ignore[override]
        return self.compare(Operator.EQUAL, value)

    def __ne__(self, value: Plain) -> Clause:  # type: ignore[override]
        return self.compare(Operator.NOT_EQUAL, value)

    def __gt__(self, value: Plain) -> Clause:
        return self.compare(Operator.GREATER, value)

    def __ge__(self, value: Plain) -> Clause:
        return self.compare(Operator.GREATER_OR_EQUAL, value)

    def __lt__(self, value: Plain) -> Clause:
        return self.compare(Operator.LESS, value)

    def __le__(self, value: Plain) -> Clause:
        return self.compare(Operator.LESS_OR_EQUAL, value)

    def contains(self, value: Plain) -> Clause:
        """Return the `~` clause: a text contains the value, ignoring case, or a list contains any item of the value."""
        return self.compare(Operator.CONTAINS, value)

    def compare(self, operator: Operator | ExtraOperator, value: Plain) -> Clause:
        """Return the clause of any operator, also of an extra one of a dialect."""
        return Clause(self._name, operator, write_value(value), function=self._function)


def write_value(value: Plain) -> str:
    """Write a value as it appears between the quotes of a filter.

    Raises:
        ExpressionError: The value has no text: a datetime without a time zone (which instant it means is unknown), or
            outside of the years 1 to 9999 in UTC, an empty list, an empty item, an item with a comma or with a space at
            either end, or a value of another type.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise refuse("no-text-for-value", found=repr(value), why="give the datetime a time zone")
        try:
            moment = value.astimezone(UTC)
        except OverflowError:
            why = "the instant is outside of the years 1 to 9999 in UTC"
            raise refuse("no-text-for-value", found=repr(value), why=why) from None
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Sequence) and all(_is_item(item) for item in value) and value:
        return ",".join(value)
    raise refuse(
        "no-text-for-value",
        found=repr(value),
        why="a text, True or False, a datetime, a date, or a list of texts without commas",
    )


def _is_item(item: object) -> bool:
    return isinstance(item, str) and "," not in item and item == item.strip(" ") != ""
