"""Field types and columns of a mapped class or a table of SQLAlchemy, in one."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.types import TypeEngine

from oneroster_filter.errors import FieldTypesError
from oneroster_filter.field_types import ANY_KEY, FieldType, FieldTypes, Kind
from oneroster_filter.sources import Through
from oneroster_filter.typing import Columns

KINDS: tuple[tuple[type[TypeEngine[Any]], Kind], ...] = (
    (sa.Enum, Kind.TEXT),
    (sa.String, Kind.TEXT),
    (sa.Uuid, Kind.TEXT),
    (sa.Boolean, Kind.FLAG),
    (sa.DateTime, Kind.INSTANT),
    (sa.Date, Kind.DAY),
    (sa.ARRAY, Kind.TEXTS),
    (sa.JSON, Kind.TEXTS),
)
"""The kinds of column types. The first class that matches decides."""

NO_KINDS: Mapping[str, Kind] = {}


class Schema(NamedTuple):
    """The fields of a mapped class or a table.

    Args:
        types: Their types, for `check`.
        columns: Their columns, for `sqlalchemy_where`.
    """

    types: FieldTypes
    columns: Columns


def sqlalchemy_fields(
    source: type[Any] | sa.FromClause, names: Mapping[str, str] | Iterable[str], *, kinds: Mapping[str, Kind] = NO_KINDS
) -> Schema:
    """Read the types and the columns of the fields that a filter may name.

    Each field is named, because a filter on a column shows what is in it: no column is open by itself.

    Args:
        source: A mapped class, or a table.
        names: A mapping from the name in filters to the attribute, or attributes that have the same name in filters. An
            attribute behind relationships has dots: `roles.role`. A name `metadata.*` for a column of JSON opens every
            key in it, as text.
        kinds: The kinds of fields whose columns do not tell it, by the name in filters: `{"schoolYear": Kind.TEXT}` for
            a column of integers.

    Returns:
        The types and the columns. A field behind a relationship to many rows has many values.

    Raises:
        FieldTypesError: The source has no such attribute; or the type of a column is not that of a field: text,
            enumeration, UUID, boolean, timestamp, date, array or JSON.
    """
    paths = names if isinstance(names, Mapping) else {name: name for name in names}

    def read_attribute(name: str, path: str) -> tuple[FieldType, Any]:
        is_open = name.endswith(f".{ANY_KEY}")
        kind = Kind.TEXT if is_open else kinds.get(name)
        return _read_attribute(source, path.removesuffix(f".{ANY_KEY}"), name, kind)

    read = {name: read_attribute(name, path) for name, path in paths.items()}
    types = FieldTypes({name: type_ for name, (type_, _) in read.items()})

    def find_column(field: str) -> Any:
        if field in read:
            return read[field][1]
        *above, key = types.path(field)
        return read[".".join((*above, ANY_KEY))][1][key].as_string()

    return Schema(types, find_column)


def _read_attribute(entity: Any, path: str, name: str, kind: Kind | None) -> tuple[FieldType, Any]:
    first, _, rest = path.partition(".")
    named = entity.c if isinstance(entity, sa.FromClause) else entity
    attribute: Any = getattr(named, first, None)
    if attribute is None:
        known = ", ".join(sorted(_list_names(entity)))
        raise FieldTypesError(f"{name}: {entity} has no {first}; it has {known}")
    if rest:
        return _read_related(attribute, rest, name, kind)
    return FieldType(kind or _find_kind(attribute.type, name)), attribute


def _list_names(entity: Any) -> list[str]:
    """Return the names that a path may begin with."""
    if isinstance(entity, sa.FromClause):
        return list(entity.c.keys())
    mapper: Any = sa.inspect(entity, raiseerr=False)
    if mapper is None:
        raise FieldTypesError(f"fields come from a mapped class or a table, not from {entity!r}")
    return list(mapper.mapper.all_orm_descriptors.keys())


def _read_related(attribute: Any, rest: str, name: str, kind: Kind | None) -> tuple[FieldType, Any]:
    # Only here: a program of tables alone then does not load the ORM, which takes 5 MB of its memory.
    from sqlalchemy.orm import RelationshipProperty, aliased

    relationship = getattr(attribute, "property", None)
    if not isinstance(relationship, RelationshipProperty):
        raise FieldTypesError(f"{name}: {attribute} is not a relationship")
    related = aliased(relationship.mapper.class_)
    join = attribute.of_type(related)
    type_, source = _read_attribute(related, rest, name, kind)
    is_nested = isinstance(source, Through)
    if relationship.uselist:
        wrap = (lambda condition: join.any(source.wrap(condition))) if is_nested else join.any
        return FieldType(type_.kind, many=True), Through(source.element if is_nested else source, wrap)
    if is_nested:
        return type_, Through(source.element, lambda condition: join.has(source.wrap(condition)))
    # One row: a subquery for its value, so that an absent row is an absent value.
    return type_, sa.select(source).where(join.expression).scalar_subquery()


def _find_kind(type_: TypeEngine[Any], name: str) -> Kind:
    stored = type_.impl_instance if isinstance(type_, sa.TypeDecorator) else type_
    kind = next((kind for class_, kind in KINDS if isinstance(stored, class_)), None)
    if kind is None:
        raise FieldTypesError(f"{name}: no kind of field fits the column type {type_!r}; name one in `kinds`")
    return kind
