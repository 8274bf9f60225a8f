"""Field types and columns of a mapped class or a table of SQLAlchemy, in one."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.types import TypeEngine

from oneroster_filter.errors import FieldTypesError
from oneroster_filter.field_types import ANY_KEY, FieldType, FieldTypes, Kind
from oneroster_filter.sources import Through
from oneroster_filter.sqlalchemy.constructs import JsonText, find_stored_type
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
        source: A mapped class, an alias of one, which the statement then selects from, or a table.
        names: A mapping from the name in filters to the attribute, or attributes that have the same name in filters. An
            attribute behind relationships has dots: `roles.role`. A name `metadata.*` for a column of JSON opens every
            key in it, as text.
        kinds: The kinds of fields whose columns do not tell it, by the name in filters: `{"schoolYear": Kind.TEXT}` for
            a column of integers.

    Returns:
        The types and the columns. A field behind a relationship to many rows has many values.

    Raises:
        FieldTypesError: The source has no such attribute; or the type of a column is not that of a field: text,
            enumeration of texts, UUID, boolean, timestamp, date, array or JSON; or `kinds` has a name that `names` has
            not.
    """
    paths = names if isinstance(names, Mapping) else {name: name for name in names}
    unknown = ", ".join(sorted(kinds.keys() - paths.keys()))
    if unknown:
        raise FieldTypesError(f"`kinds` has no field of these names: {unknown}")

    def read_attribute(name: str, path: str) -> tuple[FieldType, Any]:
        is_open = name.endswith(f".{ANY_KEY}")
        type_, column = _read_attribute(source, path.removesuffix(f".{ANY_KEY}"), name, kinds.get(name))
        if not is_open:
            return type_, column
        if not isinstance(find_stored_type(column.type), sa.JSON):
            raise FieldTypesError(f"{name}: only a column of JSON has keys, and this one has the type {column.type!r}")
        return FieldType(Kind.TEXT), column

    read = {name: read_attribute(name, path) for name, path in paths.items()}
    types = FieldTypes({name: type_ for name, (type_, _) in read.items()})

    def find_column(field: str) -> Any:
        if field in read:
            return read[field][1]
        *above, key = types.path(field)
        return JsonText(read[".".join((*above, ANY_KEY))][1][key])

    return Schema(types, find_column)


def _read_attribute(entity: Any, path: str, name: str, kind: Kind | None) -> tuple[FieldType, Any]:
    first, _, rest = path.partition(".")
    attribute: Any = entity.c.get(first) if isinstance(entity, sa.FromClause) else getattr(entity, first, None)
    if attribute is None:
        known = ", ".join(sorted(_list_names(entity)))
        raise FieldTypesError(f"{name}: {entity} has no {first}; it has {known}")
    if rest:
        return _read_related(attribute, rest, name, kind)
    type_ = getattr(attribute, "type", None)
    if type_ is None:
        raise FieldTypesError(f"{name}: {attribute} is no column; of a relationship, name an attribute: {first}.NAME")
    return FieldType(_find_kind(type_, name, kind)), attribute


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


def _find_kind(type_: TypeEngine[Any], name: str, named: Kind | None) -> Kind:
    stored = find_stored_type(type_)
    kind = named or next((kind for class_, kind in KINDS if isinstance(stored, class_)), None)
    if isinstance(stored, (sa.Numeric, sa.Float)):
        raise FieldTypesError(f"{name}: databases write a number of the type {type_!r} in different ways")
    if isinstance(stored, sa.Enum) and not all(isinstance(member.value, str) for member in stored.enum_class or ()):
        raise FieldTypesError(f"{name}: an enumeration is a field if its values are texts; those of {type_!r} are not")
    if kind is None:
        raise FieldTypesError(f"{name}: no kind of field fits the column type {type_!r}; name one in `kinds`")
    return kind
