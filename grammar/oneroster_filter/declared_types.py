"""Makes field types from existing declarations: a mapping, a marshmallow schema, a dataclass or a TypedDict.

A member that no kind fits (a number, a function) gives no field type, so a filter that names it is refused.
"""

import sys
from collections.abc import Mapping
from collections.abc import Sequence as SequenceABC
from collections.abc import Set as SetABC
from dataclasses import is_dataclass
from datetime import date, datetime
from functools import lru_cache
from types import NoneType, UnionType
from typing import (
    Any,
    Literal,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from oneroster_filter.field_types import (
    ANY_KEY,
    MAX_CLASS_REPEATS,
    FieldType,
    FieldTypes,
    Kind,
    RelativeTypes,
    make_list_types,
    prefix_names,
)

TypesSource: TypeAlias = Any
"""A `FieldTypes`, a mapping of names to `FieldType` or `Kind`, a marshmallow schema, a dataclass or a TypedDict."""

SCALARS: tuple[tuple[type, Kind], ...] = (
    (str, Kind.TEXT),
    (bool, Kind.FLAG),
    (datetime, Kind.INSTANT),
    (date, Kind.DAY),
)
"""The kinds of Python types. The first superclass in this order decides, so datetime is before date."""


def field_types(source: TypesSource) -> FieldTypes:
    """Make the field types of a declaration, for any number of calls of `check`.

    Args:
        source: A mapping from dotted name to `FieldType` or `Kind`; a marshmallow schema, class or instance, whose
            fields may declare their own types (see `marshmallow_types.read_schema`); a dataclass; or a TypedDict.
            A field has its external name: the `data_key` of a marshmallow field, else the name of the attribute.

    Returns:
        The field types: immutable, hashable. Those of a class are cached.

    Raises:
        TypeError: The source is none of these.
    """
    if isinstance(source, FieldTypes):
        return source
    if isinstance(source, Mapping):
        return FieldTypes(source)
    return _read_class_cached(source) if isinstance(source, type) else _read_declaration(source)


def _read_declaration(source: Any) -> FieldTypes:
    # A schema exists only if the caller has imported marshmallow, so this package works without it.
    marshmallow = sys.modules.get("marshmallow")
    if marshmallow and (isinstance(source, marshmallow.Schema) or _is_subclass(source, marshmallow.Schema)):
        from oneroster_filter.marshmallow_types import read_schema

        return FieldTypes(read_schema(source))
    if isinstance(source, type) and _is_record(source):
        return FieldTypes(_read_record(source, ()))
    raise TypeError(f"field types come from a mapping, a schema, a dataclass or a TypedDict, not from {source!r}")


_read_class_cached = lru_cache(maxsize=256)(_read_declaration)


def _is_subclass(source: object, parent: type) -> bool:
    return isinstance(source, type) and issubclass(source, parent)


def _is_record(annotation: Any) -> bool:
    return isinstance(annotation, type) and (is_dataclass(annotation) or is_typeddict(annotation))


def _read_record(record: type, path: tuple[type, ...]) -> dict[str, FieldType]:
    path = (*path, record)
    types: dict[str, FieldType] = {}
    for name, annotation in get_type_hints(record).items():
        types |= prefix_names(name, _read_annotation(annotation, path))
    return types


def _read_annotation(annotation: Any, path: tuple[type, ...]) -> RelativeTypes:
    """Return the types of one annotation; an empty mapping where no kind fits."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        present = [argument for argument in arguments if argument is not NoneType]
        return _read_annotation(present[0], path) if len(present) == 1 else {}
    if origin is Literal:
        return {"": FieldType(Kind.TEXT)} if all(isinstance(argument, str) for argument in arguments) else {}
    if _is_record(annotation):
        return _read_record(annotation, path) if path.count(annotation) < MAX_CLASS_REPEATS else {}
    if _is_subclass(origin, Mapping):
        return {ANY_KEY: FieldType(Kind.TEXT)}
    if arguments and (_is_subclass(origin, SequenceABC) or _is_subclass(origin, SetABC)):
        return make_list_types(_read_annotation(arguments[0], path))
    kind = next((kind for type_, kind in SCALARS if _is_subclass(annotation, type_)), None)
    return {"": FieldType(kind)} if kind else {}
