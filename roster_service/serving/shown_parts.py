"""Which parts of people are in an answer, as the statement that makes the texts of its records says: not which ones
the caller may see, but those of which at least one record has a value. The number is that of `roster/person_parts.py`.

A column is counted beside the text. A list, or a field of an object inside a record, is found by its name in the text,
which has `"name":` nowhere else: JSON escapes quotes, and PostgreSQL writes a blank behind a colon of `metadata`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from roster_service.roster.json_text import constant
from roster_service.roster.person_parts import BITS, PersonPart
from roster_service.roster.visibility import ContentRights
from roster_service.schemas.kinds import RosterField
from roster_service.serving.plan import QueryShape
from roster_service.serving.statements import STATEMENT_CACHE_SIZE

_LABEL = "has_"


@dataclass(frozen=True)
class PartSigns:
    """What tells that records have a part. `values`: expressions on a record, of which one is not NULL; `texts`: of
    which one is in the JSON text."""

    values: tuple[sa.ColumnElement[Any], ...]
    texts: tuple[str, ...]


@functools.lru_cache(STATEMENT_CACHE_SIZE)
def list_signs(shape: QueryShape) -> Mapping[PersonPart, PartSigns]:
    """Returns the signs of each part that a record with the fields of the shape can have."""
    values: dict[PersonPart, list[sa.ColumnElement[Any]]] = {}
    texts: dict[PersonPart, list[str]] = {}
    rights = shape.view.rights.of_texts
    for name in shape.fields:
        field = shape.view.fields[name]
        counted = list(field.list_values(rights))
        for part, value in counted:
            values.setdefault(part, []).append(value)
        for part, text in _list_texts(name, field, rights, is_counted=bool(counted)):
            texts.setdefault(part, []).append(text)
    return {
        part: PartSigns(tuple(values.get(part, ())), tuple(dict.fromkeys(texts.get(part, ()))))
        for part in PersonPart
        if part in values or part in texts
    }


def _list_texts(
    name: str, field: RosterField, rights: ContentRights, *, is_counted: bool
) -> Iterator[tuple[PersonPart, str]]:
    if field.is_hidden(rights):
        return
    if field.part is not None and not is_counted:
        yield from ((field.part, f'"{name}":"{word}"') for word in field.part_words)
        if not field.part_words:
            yield field.part, f'"{name}":{field.json_start}'
    for inner, member in field.members.items():
        yield from _list_texts(inner, member, rights, is_counted=False)


def count_values(shape: QueryShape, is_shown: sa.ColumnElement[bool] | None) -> list[sa.Label[bool]]:
    """Returns columns for a SELECT that joins the texts of records: whether one of them has a value of a part.
    `is_shown`: whether the text of a row is that of its record, None if it is of all rows."""

    def count(value: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
        counted: sa.ColumnElement[int] = sa.func.count(value)
        return (counted if is_shown is None else sa.func.count(value).filter(is_shown)) > 0

    return [
        sa.or_(*map(count, signs.values)).label(f"{_LABEL}{part}")
        for part, signs in list_signs(shape).items()
        if signs.values
    ]


def find_values(shape: QueryShape) -> list[sa.Label[bool]]:
    """Returns the same columns for a SELECT of one record."""
    return [
        sa.or_(*(value.is_not(None) for value in signs.values)).label(f"{_LABEL}{part}")
        for part, signs in list_signs(shape).items()
        if signs.values
    ]


def name_parts(shape: QueryShape, found: sa.FromClause) -> sa.ColumnElement[int]:
    """Returns the expression of the number of the set of parts. `found`: rows with a text, `body`, and with the columns
    of `count_values` or `find_values`."""
    bits = []
    for part, signs in list_signs(shape).items():
        has: list[sa.ColumnElement[bool]] = [found.c[f"{_LABEL}{part}"]] if signs.values else []
        has += [sa.func.strpos(found.c.body, constant(text)) > 0 for text in signs.texts]
        bits.append(sa.case((sa.or_(*has), sa.literal_column(str(BITS[part]))), else_=sa.literal_column("0")))
    return functools.reduce(lambda one, other: one + other, bits, sa.literal_column("0", sa.Integer))
