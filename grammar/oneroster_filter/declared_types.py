"""Makes field types from declarations: mappings, marshmallow schemas, pydantic models, dataclasses, TypedDicts.

A member of a declaration that no kind fits (a number, a function), or whose name no filter can write, gives no field
type, so a filter that names it is refused. In a mapping, which names each field for filters, such an entry is an error.
"""

import sys
from collections.abc import Iterator, Mapping
from collections.abc import Sequence as SequenceABC
from collections.abc import Set as SetABC
from dataclasses import is_dataclass
from datetime import date, datetime
from enum import Enum
from functools import lru_cache
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NewType,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)
from uuid import UUID

from oneroster_filter.errors import FieldTypesError
from oneroster_filter.field_types import (
    ANY_KEY,
    MAX_CLASS_REPEATS,
    FieldType,
    FieldTypes,
    Kind,
    RelativeTypes,
    is_writable,
    make_list_types,
    prefix_names,
)

if TYPE_CHECKING:
    from marshmallow import Schema

TypesSource: TypeAlias = "Mapping[str, Any] | Schema | type"
"""A mapping of names to a `FieldType`, a `Kind` or a Python type; a marshmallow schema, class or instance; or the class
of a pydantic model, a dataclass or a TypedDict."""

SCALARS: tuple[tuple[type, Kind], ...] = (
    (str, Kind.TEXT),
    (bool, Kind.FLAG),
    (datetime, Kind.INSTANT),
    (date, Kind.DAY),
    (UUID, Kind.TEXT),
)
"""The kinds of Python types. The first superclass in this order decides, so datetime is before date."""

ALLOWED = (
    "a FieldType, a Kind, or one of the types str, bool, datetime, date, Literal of texts, list[str], "
    "dict[str, str], a dataclass, a TypedDict, a pydantic model, a list of these, or one of these | None"
)
"""The values of a mapping, in messages."""


def field_types(source: TypesSource) -> FieldTypes:
    """Make the field types of a declaration, for any number of calls of `check`.

    Args:
        source: A mapping from dotted name to `FieldType`, `Kind` or a Python type (`str`, `date | None`, `list[str]`);
            a marshmallow schema, class or instance, whose fields may declare their own types (see
            `marshmallow_types.read_schema`); a pydantic model, a dataclass or a TypedDict, as a class. A field has its
            external name: the `data_key` of a marshmallow field, the alias of a pydantic field, else the name of the
            attribute.

    Returns:
        The field types: immutable, hashable. Those of a class are cached.

    Raises:
        FieldTypesError: The source is none of these, or a value of a mapping is no type of a field.
    """
    if isinstance(source, FieldTypes):
        return source
    if isinstance(source, Mapping):
        return FieldTypes(_read_mapping(source))
    return _read_class_cached(source) if isinstance(source, type) else _read_declaration(source)


def _read_declaration(source: Any) -> FieldTypes:
    # A schema exists only if the caller has imported marshmallow, so this package works without it.
    marshmallow = sys.modules.get("marshmallow")
    if marshmallow and (isinstance(source, marshmallow.Schema) or _is_subclass(source, marshmallow.Schema)):
        from oneroster_filter.marshmallow_types import read_schema

        return _leave_out_unwritable(read_schema(source))
    if isinstance(source, type) and _is_record(source):
        return _leave_out_unwritable(_read_record(source, ()))
    raise FieldTypesError(
        "field types come from a mapping, a marshmallow schema, a pydantic model, a dataclass or a TypedDict, "
        f"not from {source!r}"
    )


def _leave_out_unwritable(types: Mapping[str, FieldType]) -> FieldTypes:
    return FieldTypes({name: type_ for name, type_ in types.items() if is_writable(name)})


_read_class_cached = lru_cache(maxsize=256)(_read_declaration)


def _read_mapping(source: Mapping[str, Any]) -> dict[str, FieldType]:
    types: dict[str, FieldType] = {}
    for name, declared in source.items():
        if isinstance(declared, (FieldType, Kind)):
            types[name] = FieldType(declared) if isinstance(declared, Kind) else declared
            continue
        read = prefix_names(name, _read_annotation(declared, ()))
        if not read:
            raise FieldTypesError(f"{name}: {declared!r} is no type of a field; write {ALLOWED}")
        types |= read
    return types


def _is_subclass(source: object, parent: type) -> bool:
    return isinstance(source, type) and issubclass(source, parent)


def _is_model(annotation: Any) -> bool:
    # A model exists only if the caller has imported pydantic, so this package works without it.
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and _is_subclass(annotation, pydantic.BaseModel)


def _is_record(annotation: Any) -> bool:
    return isinstance(annotation, type) and (
        is_dataclass(annotation) or is_typeddict(annotation) or _is_model(annotation)
    )


def _list_fields(record: type) -> Iterator[tuple[str, Any]]:
    if _is_model(record):
        from oneroster_filter.pydantic_types import list_fields

        return list_fields(record)
    return iter(get_type_hints(record).items())


def _read_record(record: type, path: tuple[type, ...]) -> dict[str, FieldType]:
    path = (*path, record)
    types: dict[str, FieldType] = {}
    for name, annotation in _list_fields(record):
        types |= prefix_names(name, _read_annotation(annotation, path))
    return types


def _read_annotation(annotation: Any, path: tuple[type, ...]) -> RelativeTypes:
    """Return the types of one annotation; an empty mapping where no kind fits."""
    if isinstance(annotation, NewType):
        return _read_annotation(annotation.__supertype__, path)
    origin, arguments = get_origin(annotation), get_args(annotation)
    # The alias of a `type` statement (Python 3.12), itself or with arguments.
    if hasattr(annotation if origin is None else origin, "__value__"):
        value = annotation.__value__
        return _read_annotation(value[arguments] if arguments else value, path)
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
    return _read_scalar(annotation)


def _read_scalar(annotation: Any) -> RelativeTypes:
    scalars = SCALARS
    if "pydantic" in sys.modules:
        from oneroster_filter.pydantic_types import PYDANTIC_SCALARS

        scalars += PYDANTIC_SCALARS
    kind = next((kind for type_, kind in scalars if _is_subclass(annotation, type_)), None)
    if _is_subclass(annotation, Enum) and all(isinstance(member.value, str) for member in annotation):
        kind = Kind.TEXT
    return {"": FieldType(kind)} if kind else {}
