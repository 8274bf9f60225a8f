"""Compiles a checked expression to the text of a SQL condition with its bound values, for any driver of the DB-API."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, NamedTuple, TypeAlias

from oneroster_filter.check import TypedClause, TypedExpr
from oneroster_filter.nodes import MOST_OPERANDS, Operator, fold_tree, require_clauses
from oneroster_filter.sources import Through, compile_clause
from oneroster_filter.sql_templates import COMPARISONS, DATABASES, ICU_ROOT, list_bound_values, quote_name

PARAMSTYLES = {"qmark": "?", "format": "%s", "pyformat": "%s", "numeric": ":{}", "dollar": "${}"}
"""The placeholders of bound values, by the name that the DB-API gives them (`dollar` is that of asyncpg). The braces
are for the number of the value. The drivers with `pyformat` take placeholders without names, too."""

TextColumns: TypeAlias = Mapping[str, "str | Through"] | Callable[[str], "str | Through"]
"""The sources of all fields as SQL, by the dotted name of the field."""


class SqlText(NamedTuple):
    """A condition for WHERE.

    Args:
        text: The SQL, with a placeholder for each value.
        values: The values, in the order of the placeholders.
    """

    text: str
    values: tuple[Any, ...]


def sql_text(
    typed: TypedExpr,
    columns: TextColumns,
    *,
    database: str = "postgresql",
    paramstyle: str = "format",
    collation: str = ICU_ROOT,
) -> SqlText:
    """Compile a checked expression to the text of a condition for WHERE.

    Args:
        typed: What `check` returned.
        columns: A mapping or a function from the dotted name of a field to its column or another expression, as SQL. It
            becomes part of the text as it is, so it must not come from a request. An instant is a `timestamptz` on
            PostgreSQL, a `datetime` in UTC on MySQL and MariaDB, and a text like `2026-11-21 02:00:00.000000` in UTC on
            SQLite. A list is a `text[]` on PostgreSQL, and JSON elsewhere. The source of a `many` field is a `Through`.
        database: `postgresql`, `sqlite`, `mysql` or `mariadb`.
        paramstyle: The placeholders of the driver, a name of `PARAMSTYLES`: `format` or `pyformat` (psycopg,
            mysqlclient), `qmark` (sqlite3), `numeric` or `dollar` (asyncpg). With the first two,
            write %% for a % in a column.
        collation: The PostgreSQL collation by which `~` ignores case; see `sqlalchemy_where`.

    Returns:
        The text and the values.

    Raises:
        ColumnError: A field has no column, a `many` field has no `Through`, or another field has one.
        ValueError: The database or the style of placeholders is not known.
        TypeError: The expression is not checked.
    """
    require_clauses(typed, TypedClause, "check")
    require_one_of("database", database, DATABASES)
    require_one_of("paramstyle", paramstyle, PARAMSTYLES)
    templates = COMPARISONS[database]
    placeholder = PARAMSTYLES[paramstyle]
    adapt = ADAPTERS.get(database, _adapt_for_mysql)
    values: list[Any] = []

    def bind(value: Any) -> str:
        values.append(adapt(value))
        return placeholder.format(len(values))

    def compare(clause: TypedClause, operator: Operator, source: str) -> str:
        key = (clause.type.kind, operator)
        # The collation is the operand after the one value of `~` on text; other templates do not use it.
        operands = [source, *map(bind, list_bound_values(key, clause.value)), quote_name(collation)]
        return templates[key].format(*operands)

    def compile_one(clause: TypedClause) -> str:
        return compile_clause(clause, columns, compare, "NOT ({})".format)

    def join_all(conditions: Sequence[str]) -> str:
        joined = " AND ".join(conditions)
        # In parentheses if it is a group of a long one.
        return joined if len(conditions) < MOST_OPERANDS else f"({joined})"

    def join_any(conditions: Sequence[str]) -> str:
        return f"({' OR '.join(conditions)})"

    return SqlText(fold_tree(typed, compile_one, join_all, join_any), tuple(values))


def require_one_of(name: str, value: str, known: Iterable[str]) -> None:
    """Raise ValueError where the value of an argument is not one of the known ones."""
    if value not in known:
        raise ValueError(f"{name} is one of {', '.join(known)}, not {value!r}")


def _adapt_for_postgresql(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _adapt_for_sqlite(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(" ", timespec="microseconds")
    return value.isoformat() if isinstance(value, date) else _adapt_for_mysql(value)


def _adapt_for_mysql(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    return json.dumps(value) if isinstance(value, tuple) else value


ADAPTERS: dict[str, Callable[[Any], Any]] = {"postgresql": _adapt_for_postgresql, "sqlite": _adapt_for_sqlite}
"""The function that converts a value to one of the driver, by the name of the database."""
