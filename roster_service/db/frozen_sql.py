"""Frozen SQL: expressions and SELECTs that are compiled once and put into later statements as text.

SQLAlchemy walks over all of a statement to build and to compile it. Most of a statement that reads records is the same
for many shapes: the text of a field, the condition of what a caller may see, the state of the roster. As text they cost
a statement nothing more. The values that callers bind stay bound values; the constants become part of the text.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import Grouping

from roster_service.db.prepared_statements import DIALECT, PLACEHOLDER, quote_constants

A = TypeVar("A")
_NAME = "frozen"
# What SQLAlchemy takes for the name of a bound value in a text.
_COLON = re.compile(r":(?=\w)")


def freeze(expression: sa.ColumnElement[A], table: sa.FromClause) -> sa.ColumnElement[A]:
    """Returns the expression as text. `table`: the one that it is about; a statement that has the result must have this
    table by its own name, since the text names no other one."""
    whole = sa.select(expression.label(_NAME)).select_from(table)
    compiled: SQLCompiler = whole.compile(dialect=DIALECT)
    text = str(compiled)
    inside = text[len("SELECT ") : text.rindex(f" AS {_NAME} ")]
    return sa.type_coerce(Grouping(_make_text(inside, compiled)), expression.type)


def freeze_select(rows: sa.Select[Any], name: str) -> sa.CTE:
    """Returns a SELECT, with the CTEs that it reads, as one CTE of this name and of the same columns."""
    compiled: SQLCompiler = rows.compile(dialect=DIALECT)
    return _name_columns(rows, _make_text(str(compiled), compiled)).cte(name)


def freeze_correlated(rows: sa.Select[Any], table: sa.FromClause) -> sa.TextualSelect:
    """Returns a SELECT as text with the same columns. `table`: the one of whose row in an enclosing statement it is; as
    for `freeze`."""
    whole = sa.select(rows.exists().label(_NAME)).select_from(table)
    compiled: SQLCompiler = whole.compile(dialect=DIALECT)
    text = str(compiled)
    inside = text[len("SELECT EXISTS (") : text.rindex(f") AS {_NAME} ")]
    return _name_columns(rows, _make_text(inside, compiled))


def _name_columns(rows: sa.Select[Any], text: sa.TextClause) -> sa.TextualSelect:
    return text.columns(*(sa.column(column.name, column.type) for column in rows.selected_columns))


def _make_text(text: str, compiled: SQLCompiler) -> sa.TextClause:
    """Returns a compiled text, or a part of it, in which the values that callers bind are still bound."""
    quote = quote_constants(compiled)
    bound: dict[str, sa.BindParameter[Any]] = {}

    def write(found: re.Match[str]) -> str:
        constant = quote(found)
        if constant is not None:
            return _escape(constant)
        name = found["value"]
        bound[name] = sa.bindparam(name, type_=compiled.binds[name].type)
        return f":{name}"

    # No placeholder has a colon.
    written = PLACEHOLDER.sub(write, _escape(text))
    return sa.text(written).bindparams(*bound.values())


def _escape(text: str) -> str:
    return _COLON.sub(r"\\:", text)
