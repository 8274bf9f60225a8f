"""Examples for the OpenAPI documents: records of a made-up district and refusals, as the service gave them.

`python -m tests.openapi.examples_snapshot` asks the service for them and writes `examples.json`; a test compares the
file with the service.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from marshmallow import Schema, fields

FILE = "examples.json"
# The root of every address in the examples. A served document has the address of its installation instead.
EXAMPLE_ROOT = "https://roster.example.org"

# Schema -> field -> value.
FieldExamples = Mapping[str, Mapping[str, Any]]


@functools.cache
def load_examples() -> Mapping[str, Any]:
    """Returns the examples: `ids` by the name of their collection; for each document, its `records` and `refusals`."""
    found: Mapping[str, Any] = json.loads(resources.files(__package__).joinpath(FILE).read_text())
    return found


def collect_field_examples(pairs: Sequence[tuple[Schema, Sequence[Mapping[str, Any]]]]) -> FieldExamples:
    """Returns an example of each field that has a value in one of the records of its schema, and of nested schemas."""
    found: dict[str, dict[str, Any]] = {}
    for schema, records in pairs:
        _collect(schema, records, found)
    return found


def _collect(schema: Schema, records: Sequence[Mapping[str, Any]], found: dict[str, dict[str, Any]]) -> None:
    own = found.setdefault(type(schema).__name__, {})
    for name, field in schema.fields.items():
        key = field.data_key or name
        values = [record[key] for record in records if key in record]
        inner = field.inner if isinstance(field, fields.List) else field
        if isinstance(inner, fields.Nested):
            _collect(inner.schema, [item for value in values for item in _list(value)], found)
        elif values:
            own.setdefault(key, values[0])


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
