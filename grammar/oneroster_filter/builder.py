"""Expressions written in Python: `(F("status") == "active") & F("familyName").contains("O'B")`."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, TypeAlias

from oneroster_filter.nodes import Clause, Operator
from oneroster_filter.refusals import refuse
from oneroster_filter.values import to_utc

if TYPE_CHECKING:
    from oneroster_filter.extensions import ExtraOperator, Function

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

    def __init__(self, name: str, function: "Function | None" = None) -> None:
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

    def compare(self, operator: "Operator | ExtraOperator", value: Plain) -> Clause:
        """Return the clause of any operator, also of an extra one of a dialect."""
        return Clause(self._name, operator, write_value(value), function=self._function)


def write_value(value: Plain) -> str:
    """Write a value as it appears between the quotes of a filter.

    Args:
        value: A text; True or False; a datetime with a time zone, which is truncated to the millisecond; a date; or a
            sequence of texts, the items of a list.

    Returns:
        The text.

    Raises:
        ExpressionError: The value has no text: a datetime without a time zone (which instant it means is unknown), an
            empty list, an empty item, an item with a comma or with a space at either end, or a value of another type.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise refuse("no-text-for-value", found=repr(value), why="give the datetime a time zone")
        return to_utc(value).isoformat(timespec="milliseconds").replace("+00:00", "Z")
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
