"""The SQL that databases spell differently: text order, case folding and lists.

Each construct is one class, with a row for each dialect in a table of templates. What is not here is SQLAlchemy's own.
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
"""What `fold` is called on a SQLite connection."""


class DialectTemplate(FunctionElement[Any]):
    """An expression that is a template of its operands, one template for each dialect."""

    inherit_cache = True
    templates: ClassVar[dict[str, str]]
    """Templates by the dialect's name; `default` is for every other."""


@compiles(DialectTemplate)
def _compile_template(element: DialectTemplate, compiler: SQLCompiler, **options: Any) -> str:
    # A MariaDB server may be reached by the name of MySQL.
    name = "mariadb" if getattr(compiler.dialect, "is_mariadb", False) else compiler.dialect.name
    template = element.templates.get(name, element.templates["default"])
    return template.format(*(compiler.process(operand, **options) for operand in element.clauses))


class Exact(DialectTemplate):
    """A text that equals another only by code point.

    PostgreSQL needs no word for it: there every deterministic collation has the equality of the bytes, and naming
    another collation would keep an index from being used.
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
    """A text that is ordered against another by code point."""

    inherit_cache = True
    templates: ClassVar = {**Exact.templates, "postgresql": '({}) COLLATE "C"'}


_FOLD_TEMPLATE = f"replace(lower(replace({{}}, '{DOTTED_I}', '{PLAIN_I}')), '{FINAL_SIGMA}', '{SIGMA}')"


class Folded(DialectTemplate):
    """A text folded for `~`: see `folding.py`. Its operands are the text and PostgreSQL's collation, quoted."""

    type = sa.Text()
    inherit_cache = True
    templates: ClassVar = {
        "sqlite": f"{FOLD_FUNCTION}({{0}})",
        "postgresql": _FOLD_TEMPLATE.format("({0}) COLLATE {1}"),
        **{name: _FOLD_TEMPLATE.format(Exact.templates[name].replace("{}", "{0}")) for name in ("mysql", "mariadb")},
        "default": _FOLD_TEMPLATE.format("{0}"),
    }


class HasAll(DialectTemplate):
    """A list that holds every item of another. Its operands are the column and a bound `TextList`."""

    type = sa.Boolean()
    inherit_cache = True
    templates: ClassVar = {
        "postgresql": "(CAST({0} AS TEXT[]) @> CAST({1} AS TEXT[]))",
        "sqlite": "(NOT EXISTS (SELECT value FROM json_each({1}) EXCEPT SELECT value FROM json_each({0})))",
        "default": "JSON_CONTAINS({0}, {1})",
    }


class HasAny(DialectTemplate):
    """A list that holds an item of another. Its operands are the column and a bound `TextList`."""

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
        """The type that the database knows."""
        return dialect.type_descriptor(sa.ARRAY(sa.Text()) if dialect.name == "postgresql" else sa.Text())

    def process_bind_param(self, value: Sequence[str] | None, dialect: Dialect) -> Any:
        """The value that the driver is given."""
        items = list(value or ())
        return items if dialect.name == "postgresql" else json.dumps(items)


def folded(text: sa.ColumnExpressionArgument[Any], collation: str) -> sa.ColumnElement[str]:
    """A text as `~` compares it: what an index that shall serve `~` is made on.

    Args:
        text: A column or another expression.
        collation: The PostgreSQL collation whose `lower` knows Unicode; other databases need none.

    Returns:
        The expression, the same that `sqlalchemy_where` compares.
    """
    quoted = '"{}"'.format(collation.replace('"', '""'))
    return Folded(text, sa.literal_column(quoted))


def add_sqlite_functions(connection: Any, record: object = None) -> None:
    """Teach a SQLite connection to fold text, which `~` needs there: SQLite's own `lower` knows ASCII only.

    Listen with it: `sqlalchemy.event.listen(engine, "connect", add_sqlite_functions)`.

    Args:
        connection: The driver's connection.
        record: What SQLAlchemy's event gives beside it; not used.
    """
    connection.create_function(FOLD_FUNCTION, 1, _fold_or_null, deterministic=True)


def _fold_or_null(text: str | None) -> str | None:
    return None if text is None else fold(text)
