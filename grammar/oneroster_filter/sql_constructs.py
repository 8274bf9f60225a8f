"""SQLAlchemy constructs of the templates in `sql_templates.py`: comparisons, folded text, and lists as bound values."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql import operators
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import BinaryExpression, ClauseList, Grouping
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeEngine

from oneroster_filter.sql_templates import COMPARISONS, DEFAULT, SYNTAXES, Key, quote_name


def _fill_template(compiler: SQLCompiler, templates: dict[str, str], operands: Iterable[Any], **options: Any) -> str:
    # The dialect of a connection to MariaDB may be named `mysql`.
    name = "mariadb" if getattr(compiler.dialect, "is_mariadb", False) else compiler.dialect.name
    template = templates.get(name, templates[DEFAULT])
    return template.format(*(compiler.process(operand, **options) for operand in operands))


class Comparison(BinaryExpression[bool]):
    """A comparison of kind and operator: on the left the source of the field, on the right the bound values.

    Args:
        source: The source of the field.
        values: The values, and for `~` on text the collation.
    """

    inherit_cache = True
    templates: ClassVar[dict[str, str]]
    """Templates by the name of the database."""

    def __init__(self, source: sa.ColumnElement[Any], *values: sa.ColumnElement[Any]) -> None:
        right: Any = values[0] if len(values) == 1 else ClauseList(*values, group=False)
        # Any operator of comparison has the precedence of all of them.
        super().__init__(source, right, operators.eq, type_=_BOOLEAN)

    def __invert__(self) -> sa.ColumnElement[bool]:  # type: ignore[override]
        return ~Grouping(self)


_BOOLEAN = sa.Boolean()


@compiles(Comparison)
def _compile_comparison(element: Comparison, compiler: SQLCompiler, **options: Any) -> str:
    right: Any = element.right
    operands = right.clauses if isinstance(right, ClauseList) else (right,)
    return _fill_template(compiler, element.templates, (element.left, *operands), **options)


def _make_comparison(key: Key) -> type[Comparison]:
    kind, operator = key
    templates = {name: comparisons[key] for name, comparisons in COMPARISONS.items()}
    # One class for each comparison: SQLAlchemy's cache of compiled statements tells constructs by their class.
    return type(f"{kind.name}_{operator.name}", (Comparison,), {"inherit_cache": True, "templates": templates})


COMPARISON_CLASSES: dict[Key, type[Comparison]] = {key: _make_comparison(key) for key in COMPARISONS[DEFAULT]}
"""The construct of each comparison."""


class Folded(FunctionElement[str]):
    """A folded text (see `folding.py`). Its operands are the text and the quoted PostgreSQL collation."""

    type = sa.Text()
    inherit_cache = True


_FOLDED = {name: syntax.folded for name, syntax in SYNTAXES.items()}


@compiles(Folded)
def _compile_folded(element: Folded, compiler: SQLCompiler, **options: Any) -> str:
    return _fill_template(compiler, _FOLDED, element.clauses, **options)


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
    return Folded(text, sa.literal_column(quote_name(collation)))
