"""The SQL of each comparison in the syntax of each database. Every SQL back end makes its SQL of these templates.

In the template of a comparison, {0} is the source of the field, {1} and {2} are bound values, in this order, and for
`~` on text {2} is the collation. For an absent value a comparison is NULL, which WHERE takes as false; `!=` is written
so that it is true.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from oneroster_filter.field_types import Kind
from oneroster_filter.folding import DOTTED_I, FINAL_SIGMA, PLAIN_I, SIGMA, fold
from oneroster_filter.nodes import Operator

ESCAPE = "/"
"""The escape character of LIKE patterns. The default, a backslash, does not work on every database."""

FOLD_FUNCTION = "oneroster_fold"
"""The name of `fold` as a function of a SQLite connection."""

ICU_ROOT = "und-x-icu"
"""A collation of every PostgreSQL that is built with ICU, as in all distributions."""

BUILT_IN = "pg_c_utf8"
"""A collation of every PostgreSQL in UTF-8 from version 17 on, also of one that is built without ICU."""

BUILT_IN_SINCE = 17


def choose_collation(version: int | None) -> str:
    """Return the collation of `~`, if the program names none.

    Args:
        version: The first number of the version of PostgreSQL; None where no connection has told it yet.
    """
    return ICU_ROOT if version is None or version < BUILT_IN_SINCE else BUILT_IN


Key: TypeAlias = tuple[Kind, Operator]


def _fold(text: str) -> str:
    return f"replace(lower(replace({text}, '{DOTTED_I}', '{PLAIN_I}')), '{FINAL_SIGMA}', '{SIGMA}')"


@dataclass(frozen=True)
class Syntax:
    """The parts of comparisons whose syntax differs between databases.

    Args:
        exact: A text, to be compared for equality by code points.
        ordered: A text, to be ordered by code points.
        folded: A text {0}, folded (see `folding.py`) by the collation {1}, a quoted name.
        distinct: The comparison of {0} and {1} that is true if one of them is NULL.
        negated: The negation of a condition, true if the condition is NULL.
        has_all: Whether the list {0} has every item of the list {1}.
        has_any: Whether the list {0} has any item of the list {1}.
    """

    exact: str = "({0})"
    ordered: str = "({0})"
    folded: str = _fold("{0}")
    distinct: str = "{0} IS DISTINCT FROM {1}"
    negated: str = "NOT coalesce({0}, false)"
    has_all: str = "JSON_CONTAINS({0}, {1})"
    has_any: str = "JSON_OVERLAPS({0}, {1})"


def _make_mysql_syntax(exact: str) -> Syntax:
    return Syntax(exact, exact, _fold(exact), distinct="NOT ({0} <=> {1})")


DEFAULT = "default"
"""The name of the syntax for all other databases."""

SYNTAXES: dict[str, Syntax] = {
    # For equality, PostgreSQL needs no COLLATE: all its deterministic collations compare bytes, and another collation
    # than the column's would prevent the use of an index.
    "postgresql": Syntax(
        ordered='({0}) COLLATE "C"',
        folded=_fold("({0}) COLLATE {1}"),
        has_all="(CAST({0} AS TEXT[]) @> CAST({1} AS TEXT[]))",
        has_any="(CAST({0} AS TEXT[]) && CAST({1} AS TEXT[]))",
    ),
    "sqlite": Syntax(
        exact="({0}) COLLATE BINARY",
        ordered="({0}) COLLATE BINARY",
        folded=f"{FOLD_FUNCTION}({{0}})",
        distinct="{0} IS NOT {1}",
        has_all="(NOT EXISTS (SELECT value FROM json_each({1}) EXCEPT SELECT value FROM json_each({0})))",
        has_any="EXISTS (SELECT value FROM json_each({1}) INTERSECT SELECT value FROM json_each({0}))",
    ),
    "mysql": _make_mysql_syntax("({0}) COLLATE utf8mb4_0900_bin"),
    "mariadb": _make_mysql_syntax("({0}) COLLATE utf8mb4_nopad_bin"),
    DEFAULT: Syntax(),
}
"""The syntax of each database, by the name that SQLAlchemy and Django give it."""

DATABASES = tuple(name for name in SYNTAXES if name != DEFAULT)
"""The databases whose SQL has the meaning of the language."""

ORDER = (Operator.GREATER, Operator.GREATER_OR_EQUAL, Operator.LESS, Operator.LESS_OR_EQUAL)


def _write_comparisons(syntax: Syntax) -> dict[Key, str]:
    plain = {operator: f"{{0}} {operator.value} {{1}}" for operator in (Operator.EQUAL, *ORDER)}
    within = "{0} BETWEEN {1} AND {2}"
    folded = [syntax.folded.format(operand, "{2}") for operand in ("{0}", "{1}")]
    return {
        (Kind.TEXT, Operator.EQUAL): f"{syntax.exact} = {{1}}",
        (Kind.TEXT, Operator.NOT_EQUAL): syntax.distinct.format(syntax.exact, "{1}"),
        **{(Kind.TEXT, operator): f"{syntax.ordered} {operator.value} {{1}}" for operator in ORDER},
        (Kind.TEXT, Operator.CONTAINS): f"{folded[0]} LIKE {folded[1]} ESCAPE '{ESCAPE}'",
        (Kind.FLAG, Operator.EQUAL): plain[Operator.EQUAL],
        (Kind.FLAG, Operator.NOT_EQUAL): syntax.distinct,
        **{(Kind.INSTANT, operator): plain[operator] for operator in ORDER},
        (Kind.INSTANT, Operator.EQUAL): within,
        (Kind.INSTANT, Operator.NOT_EQUAL): syntax.negated.format(within),
        **{(Kind.DAY, operator): template for operator, template in plain.items()},
        (Kind.DAY, Operator.NOT_EQUAL): syntax.distinct,
        (Kind.TEXTS, Operator.EQUAL): syntax.has_all,
        (Kind.TEXTS, Operator.NOT_EQUAL): syntax.negated.format(syntax.has_all),
        (Kind.TEXTS, Operator.CONTAINS): syntax.has_any,
    }


COMPARISONS: dict[str, dict[Key, str]] = {name: _write_comparisons(syntax) for name, syntax in SYNTAXES.items()}
"""The template of each comparison, by the name of the database, kind and operator."""


def _take_itself(value: Any) -> tuple[Any, ...]:
    return (value,)


def _make_pattern(value: str) -> tuple[str]:
    """Return the LIKE pattern for texts that contain the value, with the wildcards of the value escaped."""
    return ("%" + re.sub(f"[%_{ESCAPE}]", rf"{ESCAPE}\g<0>", value) + "%",)


_BOUND: dict[Key, Callable[[Any], tuple[Any, ...]]] = {
    (Kind.TEXT, Operator.CONTAINS): _make_pattern,
    (Kind.INSTANT, Operator.EQUAL): lambda span: (span.first, span.last),
    (Kind.INSTANT, Operator.NOT_EQUAL): lambda span: (span.first, span.last),
    (Kind.INSTANT, Operator.GREATER): lambda span: (span.last,),
    (Kind.INSTANT, Operator.GREATER_OR_EQUAL): lambda span: (span.first,),
    (Kind.INSTANT, Operator.LESS): lambda span: (span.first,),
    (Kind.INSTANT, Operator.LESS_OR_EQUAL): lambda span: (span.last,),
}


def list_bound_values(key: Key, value: Any) -> tuple[Any, ...]:
    """Return the values that the template of a comparison binds."""
    return _BOUND.get(key, _take_itself)(value)


def quote_name(name: str) -> str:
    """Return the name of a collation as SQL has it."""
    return '"{}"'.format(name.replace('"', '""'))


def add_sqlite_functions(connection: Any, record: object = None) -> None:
    """Add the function for `~` to a SQLite connection, because SQLite's own `lower` knows only ASCII.

    Args:
        connection: A connection of `sqlite3`. The function can be a listener of SQLAlchemy, too:
            `sqlalchemy.event.listen(engine, "connect", add_sqlite_functions)`.
        record: The second argument of SQLAlchemy's event; not used.
    """
    connection.create_function(FOLD_FUNCTION, 1, _fold_or_null, deterministic=True)


def _fold_or_null(text: str | None) -> str | None:
    return None if text is None else fold(text)
