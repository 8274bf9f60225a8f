"""The fields of pydantic models, by the names that they have in JSON."""

from collections.abc import Iterator
from typing import Any, get_type_hints

import pydantic
import pydantic_core

from oneroster_filter.field_types import Kind

# At run time, these are classes of their own.
PYDANTIC_SCALARS: tuple[tuple[type, Kind], ...] = (
    (pydantic.AwareDatetime, Kind.INSTANT),
    (pydantic.NaiveDatetime, Kind.INSTANT),
    (pydantic.PastDatetime, Kind.INSTANT),
    (pydantic.FutureDatetime, Kind.INSTANT),
    (pydantic.PastDate, Kind.DAY),
    (pydantic.FutureDate, Kind.DAY),
    (pydantic.EmailStr, Kind.TEXT),
    # Of versions before 2.10, and after.
    (pydantic_core.Url, Kind.TEXT),
    (pydantic.AnyUrl, Kind.TEXT),
)
"""The kinds of pydantic's own types."""


def list_fields(model: type[pydantic.BaseModel]) -> Iterator[tuple[str, Any]]:
    """Yield the name in JSON and the annotation of each field, but for those with `exclude=True`."""
    annotations = get_type_hints(model)
    for name, field in model.model_fields.items():
        if not field.exclude:
            yield field.serialization_alias or field.alias or name, annotations[name]
