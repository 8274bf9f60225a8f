"""Makes field types from marshmallow schemas, so that filters can name the fields of the wire format."""

# Annotations are not evaluated, because `Field` takes no type parameter in marshmallow 3.
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from marshmallow import Schema, fields

from oneroster_filter.field_types import (
    ANY_KEY,
    MAX_CLASS_REPEATS,
    FieldType,
    Kind,
    RelativeTypes,
    make_list_types,
    prefix_names,
)

Path = tuple[type[Schema], ...]


def read_schema(schema: Schema | type[Schema]) -> dict[str, FieldType]:
    """Read the types of a schema's fields.

    A field can declare its types in an attribute `filter_types`, a mapping from relative dotted names to `FieldType`.
    There the empty name is the field itself, and an empty mapping means that filters cannot name the field. Other
    fields get their types by their class (`FIELDS`). Fields of any other class, and `load_only` fields, have no type.
    """
    return _read_fields(schema() if isinstance(schema, type) else schema, ())


def _read_fields(schema: Schema, path: Path) -> dict[str, FieldType]:
    path = (*path, type(schema))
    types: dict[str, FieldType] = {}
    for name, field in schema.fields.items():
        if not field.load_only:
            types |= prefix_names(field.data_key or name, _read_field(field, path))
    return types


def _read_field(field: fields.Field[Any], path: Path) -> RelativeTypes:
    own: Mapping[str, FieldType] | None = getattr(field, "filter_types", None)
    if own is not None:
        return own
    return next((read(field, path) for class_, read in FIELDS if isinstance(field, class_)), {})


def _make_scalar_reader(kind: Kind) -> Callable[[Any, Path], RelativeTypes]:
    return lambda field, path: {"": FieldType(kind)}


def _read_nothing(field: Any, path: Path) -> RelativeTypes:
    return {}


def _read_open(field: Any, path: Path) -> RelativeTypes:
    return {ANY_KEY: FieldType(Kind.TEXT)}


def _read_list(field: Any, path: Path) -> RelativeTypes:
    return make_list_types(_read_field(field.inner, path))


def _read_pluck(field: Any, path: Path) -> RelativeTypes:
    return _apply_many(field, _read_field(field.schema.fields[field.field_name], path))


def _read_nested(field: Any, path: Path) -> RelativeTypes:
    schema = field.schema
    return _apply_many(field, _read_fields(schema, path) if path.count(type(schema)) < MAX_CLASS_REPEATS else {})


def _apply_many(field: Any, types: RelativeTypes) -> RelativeTypes:
    return make_list_types(types) if field.schema.many else types


FIELDS: tuple[tuple[type[fields.Field[Any]], Callable[[Any, Path], RelativeTypes]], ...] = (
    (fields.String, _make_scalar_reader(Kind.TEXT)),
    (fields.UUID, _make_scalar_reader(Kind.TEXT)),
    (fields.Enum, _make_scalar_reader(Kind.TEXT)),
    (fields.Boolean, _make_scalar_reader(Kind.FLAG)),
    (fields.Date, _make_scalar_reader(Kind.DAY)),
    (fields.Time, _read_nothing),  # a DateTime in marshmallow 3
    (fields.DateTime, _make_scalar_reader(Kind.INSTANT)),
    (fields.Pluck, _read_pluck),
    (fields.Nested, _read_nested),
    (fields.List, _read_list),
    (fields.Mapping, _read_open),
)
"""The reader of types for each class of field. The first class that matches decides."""
