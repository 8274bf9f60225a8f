"""Filters as SQLAlchemy conditions: `apply_filter` is the one call from a text to a SELECT with its WHERE."""

from typing import Any, TypeVar

import sqlalchemy as sa

from oneroster_filter.check import check
from oneroster_filter.dialect import Dialect
from oneroster_filter.errors import FieldTypesError
from oneroster_filter.parser import parse
from oneroster_filter.sqlalchemy.constructs import folded
from oneroster_filter.sqlalchemy.model import Schema, sqlalchemy_fields
from oneroster_filter.sqlalchemy.where import Contains, FilterValue, sqlalchemy_where

Selected = TypeVar("Selected", sa.Select[Any], sa.Update, sa.Delete)


def apply_filter(
    select: Selected,
    text: str | None,
    schema: Schema,
    *,
    dialect: Dialect | None = None,
    collation: str | None = None,
    contains: Contains | None = None,
) -> Selected:
    """Add a filter to a statement.

    Args:
        select: A SELECT, an UPDATE or a DELETE.
        text: The filter, percent-decoded; None where a request has none.
        schema: The fields that the filter may name, with their columns: what `sqlalchemy_fields` returned, or a
            `Schema` of types and columns.
        dialect: The dialect of the text. Without it, the language is that of the standard.
        collation: As in `sqlalchemy_where`.
        contains: As in `sqlalchemy_where`.

    Returns:
        The statement with the filter in its WHERE; without a text, the statement itself.

    Raises:
        FilterError: The filter is refused. Its text is the message for the author of the filter.
        FieldTypesError: The schema is none.
        ColumnError: The columns do not fit the types.
    """
    if not isinstance(schema, Schema):
        raise FieldTypesError(
            f"a schema is what sqlalchemy_fields returned, or Schema(field_types(...), columns), not {schema!r}"
        )
    if text is None:
        return select
    typed = check(parse(text) if dialect is None else dialect.parse(text), schema.types)
    return select.where(sqlalchemy_where(typed, schema.columns, collation=collation, contains=contains))


__all__ = ["FilterValue", "Schema", "apply_filter", "folded", "sqlalchemy_fields", "sqlalchemy_where"]
