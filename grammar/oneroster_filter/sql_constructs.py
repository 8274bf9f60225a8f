"""SQL constructs whose syntax differs between databases: text comparison, case folding and lists.

Each construct is one class with a template for each dialect. SQLAlchemy itself provides everything else.
"""

import json
from collections.abc import Sequence
from typing import Any, ClassVar

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeEngine

from oneroster_filter.folding import DOTTED_I, FINAL_SIGMA, PLAIN_I, SIGMA, fold

FOLD_FUNCTION = "oneroster_fold"
"""The name of `fold` as a function of a SQLite connection."""


class DialectTemplate(FunctionElement[Any]):
    """An expression made from its operands by a template, one for each dialect."""

    inherit_cache = True
    templates: ClassVar[dict[str, str]]
    """Templates by the name of the dialect; `default` is for all others."""


@compiles(DialectTemplate)
def _compile_template(element: DialectTemplate, compiler: SQLCompiler, **options: Any) -> str:
    # The dialect of a connection to MariaDB may be named `mysql`.
    name = "mariadb" if getattr(compiler.dialect, "is_mariadb", False) else compiler.dialect.name
    template = element.templates.get(name, element.templates["default"])
    return template.format(*(compiler.process(operand, **options) for operand in element.clauses))


class Exact(DialectTemplate):
    """A text that is compared for equality by code points.

    PostgreSQL needs no COLLATE for this: all its deterministic collations compare bytes for equality, and another
    collation than the column's would prevent the use of an index.
    """

    type = sa.Text()
    inherit_cache = True
    templates: ClassVar = {
        "sqlite": "({}) COLLATE BINARY",
        "mysql": "({}) COLLATE utf8mb4_0900_bin",
        "mariadb": "({}) COLLATE utf8mb4_nopad_bin",
        "default": "({})",
    }


class Ordered(Exact):
    """A text that is ordered by code points."""

    inherit_cache = True
    templates: ClassVar = {**Exact.templates, "postgresql": '({}) COLLATE "C"'}


_FOLD_TEMPLATE = f"replace(lower(replace({{}}, '{DOTTED_I}', '{PLAIN_I}')), '{FINAL_SIGMA}', '{SIGMA}')"


class Folded(DialectTemplate):
    """A folded text (see `folding.py`). Its operands are the text and the quoted PostgreSQL collation."""

    type = sa.Text()
    inherit_cache = True
    templates: ClassVar = {
        "sqlite": f"{FOLD_FUNCTION}({{0}})",
        "postgresql": _FOLD_TEMPLATE.format("({0}) COLLATE {1}"),
        **{name: _FOLD_TEMPLATE.format(Exact.templates[name].replace("{}", "{0}")) for name in ("mysql", "mariadb")},
        "default": _FOLD_TEMPLATE.format("{0}"),
    }


class HasAll(DialectTemplate):
    """Whether a list contains every item of another. The operands are the column and a bound `TextList`."""

    type = sa.Boolean()
    inherit_cache = True
    templates: ClassVar = {
        "postgresql": "(CAST({0} AS TEXT[]) @> CAST({1} AS TEXT[]))",
        "sqlite": "(NOT EXISTS (SELECT value FROM json_each({1}) EXCEPT SELECT value FROM json_each({0})))",
        "default": "JSON_CONTAINS({0}, {1})",
    }


class HasAny(DialectTemplate):
    """Whether a list contains any item of another. The operands are the column and a bound `TextList`."""

    type = sa.Boolean()
    inherit_cache = True
    templates: ClassVar = {
        "postgresql": "(CAST({0} AS TEXT[]) && CAST({1} AS TEXT[]))",
        "sqlite": "EXISTS (SELECT value FROM json_each({1}) INTERSECT SELECT value FROM json_each({0}))",
        "default": "JSON_OVERLAPS({0}, {1})",
    }


class TextList(sa.TypeDecorator[Sequence[str]]):
    """A list of texts as one bound value: an array on PostgreSQL, the text of a JSON array elsewhere."""

    impl = sa.Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return the type in the database."""
        return dialect.type_descriptor(sa.ARRAY(sa.Text()) if dialect.name == "postgresql" else sa.Text())

    def process_bind_param(self, value: Sequence[str] | None, dialect: Dialect) -> Any:
        """Return the value for the driver."""
        items = list(value or ())
        return items if dialect.name == "postgresql" else json.dumps(items)


def folded(text: sa.ColumnExpressionArgument[Any], collation: str) -> sa.ColumnElement[str]:
    """Return the folded text, as `~` compares it. Create an index on this expression to make `~` fast.

    Args:
        text: A column or another expression.
        collation: The PostgreSQL collation, whose `lower` must know Unicode. Other databases ignore it.

    Returns:
        The expression that `sqlalchemy_where` compares.
    """
    quoted = '"{}"'.format(collation.replace('"', '""'))
    return Folded(text, sa.literal_column(quoted))


def add_sqlite_functions(connection: Any, record: object = None) -> None:
    """Add the function for `~` to a SQLite connection, because SQLite's own `lower` knows only ASCII.

    Use it as a listener: `sqlalchemy.event.listen(engine, "connect", add_sqlite_functions)`.

    Args:
        connection: The driver's connection.
        record: The second argument of SQLAlchemy's event; not used.
    """
    connection.create_function(FOLD_FUNCTION, 1, _fold_or_null, deterministic=True)


def _fold_or_null(text: str | None) -> str | None:
    return None if text is None else fold(text)
