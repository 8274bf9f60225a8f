"""SQLAlchemy constructs of the templates in `sql_templates.py`: comparisons, folded text, and lists as bound values."""

import json
from collections.abc import Sequence
from typing import Any, ClassVar

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql import operators
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import Grouping
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.sql.operators import OperatorType
from sqlalchemy.types import TypeEngine

from oneroster_filter.field_types import Kind
from oneroster_filter.sql_templates import COMPARISONS, DEFAULT, SYNTAXES, Key, quote_name


class DialectTemplate(FunctionElement[Any]):
    """An expression made from its operands by a template, one for each database."""

    # SQLAlchemy asks for the name with each operand. An attribute that is missing would take a third of all the time.
    name = "oneroster_filter"
    inherit_cache = True
    templates: ClassVar[dict[str, str]]
    """Templates by the name of the database."""
    against: ClassVar[OperatorType] = operators.comma_op
    """The operator beside the operands, which decides whether they need parentheses."""


@compiles(DialectTemplate)
def _compile_template(element: DialectTemplate, compiler: SQLCompiler, **options: Any) -> str:
    # The dialect of a connection to MariaDB may be named `mysql`.
    name = "mariadb" if getattr(compiler.dialect, "is_mariadb", False) else compiler.dialect.name
    template = element.templates.get(name, element.templates[DEFAULT])
    operands = (operand.self_group(against=element.against) for operand in element.clauses)
    return template.format(*(compiler.process(operand, **options) for operand in operands))


class Comparison(DialectTemplate):
    """A comparison of kind and operator. Its operands are the source of the field and the bound values."""

    type = sa.Boolean()
    inherit_cache = True

    def self_group(self, against: OperatorType | None = None) -> sa.ColumnElement[Any]:  # type: ignore[override]
        """Return the comparison in parentheses where an operator around it needs them, as of any comparison."""
        return Grouping(self) if operators.is_precedent(operators.eq, against) else self

    def __invert__(self) -> sa.ColumnElement[bool]:
        return ~Grouping(self)


def _make_comparison(key: Key) -> type[Comparison]:
    kind, operator = key
    templates = {name: comparisons[key] for name, comparisons in COMPARISONS.items()}
    # One class for each comparison: SQLAlchemy's cache of compiled statements tells constructs by their class.
    # In the other templates, the source is in parentheses or an argument.
    against = operators.eq if kind in (Kind.FLAG, Kind.INSTANT, Kind.DAY) else operators.comma_op
    members = {"inherit_cache": True, "templates": templates, "against": against}
    return type(f"{kind.name}_{operator.name}", (Comparison,), members)


COMPARISON_CLASSES: dict[Key, type[Comparison]] = {key: _make_comparison(key) for key in COMPARISONS[DEFAULT]}
"""The construct of each comparison."""


class Folded(DialectTemplate):
    """A folded text (see `folding.py`). Its operands are the text and the quoted PostgreSQL collation."""

    type = sa.Text()
    inherit_cache = True
    templates: ClassVar = {name: syntax.folded for name, syntax in SYNTAXES.items()}


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
