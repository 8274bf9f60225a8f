"""The operators of each kind of field, and the names of kinds in messages."""

from oneroster_filter.field_types import Kind
from oneroster_filter.nodes import Operator

EQUALITY = (Operator.EQUAL, Operator.NOT_EQUAL)
ORDER = (Operator.GREATER, Operator.GREATER_OR_EQUAL, Operator.LESS, Operator.LESS_OR_EQUAL)
CONTAINS = (Operator.CONTAINS,)

OPERATORS: dict[Kind, tuple[Operator, ...]] = {
    Kind.TEXT: EQUALITY + ORDER + CONTAINS,
    Kind.FLAG: EQUALITY,
    Kind.INSTANT: EQUALITY + ORDER,
    Kind.DAY: EQUALITY + ORDER,
    Kind.TEXTS: EQUALITY + CONTAINS,
}
"""The operators of each kind. `sql_where` and `predicate` have a row for each of them; the predicate has none for `!=`,
because it is always the negation of `=`."""

KIND_NAMES: dict[Kind, str] = {
    Kind.TEXT: "text",
    Kind.FLAG: "true or false",
    Kind.INSTANT: "an instant",
    Kind.DAY: "a day",
    Kind.TEXTS: "a list",
}
"""The names of kinds in messages."""
