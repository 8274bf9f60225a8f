"""SQLAlchemy constructs of the templates in `sql_templates.py`: comparisons, folded text, lists as bound values, and
the conversions of columns whose type the templates do not compare."""

import functools
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import CITEXT
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql import operators
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import BinaryExpression, ClauseList, Grouping
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeEngine

from oneroster_filter.field_types import Kind
from oneroster_filter.sql_templates import COMPARISONS, DATABASES, DEFAULT, SYNTAXES, Key, choose_collation, quote_name


def _fill_template(compiler: SQLCompiler, templates: dict[str, str], operands: Iterable[Any], **options: Any) -> str:
    # The dialect of a connection to MariaDB may be named `mysql`.
    name = "mariadb" if getattr(compiler.dialect, "is_mariadb", False) else compiler.dialect.name
    template = templates.get(name)
    if template is None:
        raise sa.exc.CompileError(f"a filter has no SQL for {name}: the databases are {', '.join(DATABASES)}")
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

# A pickled condition names its classes.
globals().update({class_.__name__: class_ for class_ in COMPARISON_CLASSES.values()})


class Folded(FunctionElement[str]):
    """A folded text (see `folding.py`). Its operands are the text and the quoted PostgreSQL collation."""

    type = sa.Text()
    inherit_cache = True


_FOLDED = {name: syntax.folded for name, syntax in SYNTAXES.items()}


@compiles(Folded)
def _compile_folded(element: Folded, compiler: SQLCompiler, **options: Any) -> str:
    return _fill_template(compiler, _FOLDED, element.clauses, **options)


class Converted(FunctionElement[Any]):
    """The value of a column as the templates take it: UUIDs as text with hyphens, JSON as a list, a text to the letter.

    Which conversion the database needs depends on the type of the column there.
    """

    type = sa.Text()
    inherit_cache = True


@compiles(Converted)
def _compile_converted(element: Converted, compiler: SQLCompiler, **options: Any) -> str:
    [source] = element.clauses
    is_postgresql = compiler.dialect.name == "postgresql"
    type_ = find_stored_type(source.type.dialect_impl(compiler.dialect))
    made: Any = source
    if isinstance(type_, sa.Uuid):
        is_native = type_.native_uuid and compiler.dialect.supports_native_uuid
        made = sa.cast(source, sa.Text) if is_native else _insert_hyphens(source)
    elif isinstance(type_, sa.JSON) and is_postgresql:
        made = sa.literal_column(_POSTGRESQL_LIST.format(compiler.process(source, **options)))
    elif isinstance(type_, sa.String) and is_postgresql:
        made = sa.collate(source, "C")
    return compiler.process(made, **options)


# A value of JSON that is no list, such as null, has no items.
_POSTGRESQL_LIST = (
    "CASE jsonb_typeof(CAST({0} AS JSONB)) WHEN 'array' THEN "
    "ARRAY(SELECT jsonb_array_elements_text(CAST({0} AS JSONB))) END"
)
_HYPHENS = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
"""The first character and the length of each part of a UUID that is stored as 32 digits."""


def _insert_hyphens(source: Any) -> Any:
    digits = sa.type_coerce(source, sa.Text())
    parts: list[Any] = [sa.func.substr(digits, *map(sa.literal_column, map(str, part))) for part in _HYPHENS]
    return functools.reduce(lambda left, right: left + sa.literal_column("'-'", sa.Text()) + right, parts)


class Group(FunctionElement[bool]):
    """A condition in parentheses that SQLAlchemy does not unpack into the one around it."""

    type = _BOOLEAN
    inherit_cache = True


@compiles(Group)
def _compile_group(element: Group, compiler: SQLCompiler, **options: Any) -> str:
    [condition] = element.clauses
    return f"({compiler.process(condition, **options)})"


class JsonText(FunctionElement[str]):
    """The text of a value in a column of JSON: of a text its characters, of another value what the database writes.

    Its operand is the column with a key, `column["key"]`.
    """

    type = sa.Text()
    inherit_cache = True


@compiles(JsonText)
def _compile_json_text(element: JsonText, compiler: SQLCompiler, **options: Any) -> str:
    [value] = element.clauses
    text = compiler.process(value.as_string(), **options)
    if compiler.dialect.name != "sqlite":
        return text
    # Of true, JSON_EXTRACT makes 1.
    column, path = (compiler.process(operand, **options) for operand in (value.left, value.right))
    flags = "WHEN 'true' THEN 'true' WHEN 'false' THEN 'false'"
    return f"CASE json_type({column}, {path}) {flags} ELSE CAST({text} AS TEXT) END"


# The names of the collations that every PostgreSQL has, which are deterministic.
_OWN_COLLATION = re.compile(r"C|POSIX|default|ucs_basic|unicode|pg_.*|.*-x-icu|[a-z]{2,3}_[A-Z]{2}.*")


def find_stored_type(type_: Any) -> Any:
    """Return the type that the database stores."""
    return type_.impl_instance if isinstance(type_, sa.TypeDecorator) else type_


def convert_source(kind: Kind, source: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """Return the source of a field as the comparisons of its kind take it: itself if they compare its type."""
    type_ = find_stored_type(source.type)
    if kind is Kind.TEXTS:
        return Converted(source) if isinstance(type_, sa.JSON) else source
    if kind is not Kind.TEXT or (type(type_) in (sa.Text, sa.String) and not type_.collation):
        return source
    if isinstance(type_, sa.Enum):
        return _convert_enumeration(type_, source)
    if isinstance(type_, (sa.Integer, CITEXT)):
        return sa.cast(source, sa.Text)
    is_inexact = isinstance(type_, sa.String) and type_.collation and not _OWN_COLLATION.fullmatch(type_.collation)
    return Converted(source) if is_inexact or isinstance(type_, sa.Uuid) else source


def _convert_enumeration(type_: sa.Enum, source: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    # A value of an enumeration of PostgreSQL cannot be compared with a text.
    stored = sa.cast(source, sa.Text)
    members = zip(type_.enums, type_.enum_class or (), strict=False)
    shown = {name: member.value for name, member in members if isinstance(member.value, str) and member.value != name}
    return sa.case(shown, value=stored, else_=stored) if shown else stored


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


class ChosenCollation(FunctionElement[str]):
    """The name of the collation that the PostgreSQL of a connection has; see `choose_collation`."""

    type = sa.Text()
    inherit_cache = True


@compiles(ChosenCollation)
def _compile_collation(element: ChosenCollation, compiler: SQLCompiler, **options: Any) -> str:
    version = getattr(compiler.dialect, "server_version_info", None) or (None,)
    return quote_name(choose_collation(version[0]))


@functools.lru_cache(maxsize=64)
def make_collation(name: str | None) -> sa.ColumnElement[Any]:
    """Return the quoted name of a collation; of the one that the database has, for None."""
    return ChosenCollation() if name is None else sa.literal_column(quote_name(name))


def folded(text: sa.ColumnExpressionArgument[Any], collation: str | None = None) -> sa.ColumnElement[str]:
    """Return the folded text, as `~` compares it. Create an index on this expression to make `~` fast.

    Args:
        text: A column or another expression.
        collation: As in `sqlalchemy_where`.

    Returns:
        The expression that `sqlalchemy_where` compares.
    """
    return Folded(text, make_collation(collation))
