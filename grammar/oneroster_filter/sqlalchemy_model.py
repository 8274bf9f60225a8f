"""Field types and columns of a mapped class of SQLAlchemy, in one."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.orm import QueryableAttribute, RelationshipProperty, aliased
from sqlalchemy.types import TypeEngine

from oneroster_filter.field_types import ANY_KEY, FieldType, FieldTypes, Kind
from oneroster_filter.sources import Through

KINDS: tuple[tuple[type[TypeEngine[Any]], Kind], ...] = (
    (sa.Enum, Kind.TEXT),
    (sa.String, Kind.TEXT),
    (sa.Boolean, Kind.FLAG),
    (sa.DateTime, Kind.INSTANT),
    (sa.Date, Kind.DAY),
    (sa.ARRAY, Kind.TEXTS),
)
"""The kinds of column types. The first class that matches decides."""


class ModelFields(NamedTuple):
    """The fields of a mapped class.

    Args:
        types: Their types, for `check`.
        columns: Their columns, for `sqlalchemy_where`.
    """

    types: FieldTypes
    columns: Callable[[str], Any]


def sqlalchemy_fields(model: type[Any], names: Mapping[str, str] | Iterable[str]) -> ModelFields:
    """Read the types and the columns of the fields that a filter may name.

    Each field is named, because a filter on a column shows what is in it: no column is open by itself.

    Args:
        model: A mapped class.
        names: A mapping from the name in filters to the attribute, or attributes that have the same name in filters. An
            attribute behind relationships has dots: `roles.role`. A name `metadata.*` for a column of JSON opens every
            key in it, as text.

    Returns:
        The types and the columns. A field behind a relationship to many rows has many values.

    Raises:
        TypeError: The type of a column is not that of a field: text, boolean, timestamp, date, array, or JSON for a
            name that ends with `.*`.
        AttributeError: The class has no such attribute.
    """
    paths = names if isinstance(names, Mapping) else {name: name for name in names}
    read = {name: _read_attribute(model, path.removesuffix(f".{ANY_KEY}"), name) for name, path in paths.items()}
    types = FieldTypes({name: type_ for name, (type_, _) in read.items()})

    def find_column(field: str) -> Any:
        if field in read:
            return read[field][1]
        *above, key = types.path(field)
        return read[".".join((*above, ANY_KEY))][1][key].as_string()

    return ModelFields(types, find_column)


def _read_attribute(entity: Any, path: str, name: str) -> tuple[FieldType, Any]:
    first, _, rest = path.partition(".")
    attribute: QueryableAttribute[Any] = getattr(entity, first)
    if rest:
        return _read_related(attribute, rest, name)
    kind = Kind.TEXT if name.endswith(f".{ANY_KEY}") else _find_kind(attribute.type, name)
    # A value of an enumeration of PostgreSQL cannot be compared with a text.
    is_enumeration = isinstance(attribute.type, sa.Enum)
    return FieldType(kind), sa.cast(attribute, sa.Text) if is_enumeration else attribute


def _read_related(attribute: QueryableAttribute[Any], rest: str, name: str) -> tuple[FieldType, Any]:
    relationship = attribute.property
    if not isinstance(relationship, RelationshipProperty):
        raise TypeError(f"{name}: {attribute} is not a relationship")
    related = aliased(relationship.mapper.class_)
    join = attribute.of_type(related)
    type_, source = _read_attribute(related, rest, name)
    is_nested = isinstance(source, Through)
    if relationship.uselist:
        wrap = (lambda condition: join.any(source.wrap(condition))) if is_nested else join.any
        return FieldType(type_.kind, many=True), Through(source.element if is_nested else source, wrap)
    if is_nested:
        return type_, Through(source.element, lambda condition: join.has(source.wrap(condition)))
    # One row: a subquery for its value, so that an absent row is an absent value.
    return type_, sa.select(source).where(join.expression).scalar_subquery()


def _find_kind(type_: TypeEngine[Any], name: str) -> Kind:
    kind = next((kind for class_, kind in KINDS if isinstance(type_, class_)), None)
    if kind is None:
        raise TypeError(f"{name}: no kind of field fits the column type {type_!r}")
    return kind
