"""Which operators each kind of field takes, and what kinds are called."""

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
"""The operators of each kind. The SQL and the plain predicate have a row for each of them, except for `!=`, which is
everywhere the negation of `=`."""

KIND_NAMES: dict[Kind, str] = {
    Kind.TEXT: "text",
    Kind.FLAG: "true or false",
    Kind.INSTANT: "an instant",
    Kind.DAY: "a day",
    Kind.TEXTS: "a list",
}
"""How messages name a kind."""
