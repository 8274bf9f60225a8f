"""SQL expressions that make the JSON text of a value; NULL means that the value is left out.

A record is put together as text, pair by pair: `concat_ws` skips NULLs, so absent values vanish without
`json_strip_nulls` (which would also strip inside `metadata`) and without the 50 pairs of `json_build_object`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    FromClause,
    TableValuedAlias,
    Text,
    bindparam,
    case,
    cast,
    collate,
    column,
    func,
    literal_column,
    null,
)
from sqlalchemy.dialects.postgresql import JSONB

SAFE_ID = "^[A-Za-z0-9._~-]*$"
# Of PostgreSQL's to_char; the quotes are part of the JSON.
INSTANT_FORMAT = r'"\""YYYY-MM-DD"T"HH24:MI:SS.MS"Z\""'
DAY_FORMAT = r'"\""YYYY-MM-DD"\""'


def base_url() -> BindParameter[str]:
    """The bound root address that refs are built on, escaped for a JSON string by whoever binds it."""
    return bindparam("base_url", type_=Text)


def constant(text: str) -> ColumnElement[str]:
    """A piece of JSON that this code itself spells: part of the statement, never a caller's value."""
    return literal_column("'" + text.replace("'", "''") + "'", Text)


def text_json(value: ColumnElement[str]) -> ColumnElement[str]:
    """A JSON string."""
    return cast(func.to_json(value), Text)


def flag_json(value: ColumnElement[bool]) -> ColumnElement[str]:
    """The strings "true" and "false", as OneRoster writes booleans."""
    return case((value, constant('"true"')), (~value, constant('"false"')), else_=null())


def instant_json(value: ColumnElement[object]) -> ColumnElement[str]:
    """UTC with milliseconds: "2026-11-21T02:00:00.000Z"."""
    return func.to_char(func.timezone(constant("UTC"), value), constant(INSTANT_FORMAT))


def day_json(value: ColumnElement[object]) -> ColumnElement[str]:
    """ "2026-11-21"."""
    return func.to_char(value, constant(DAY_FORMAT))


def stored_json(value: ColumnElement[object]) -> ColumnElement[str]:
    """A stored JSON value or a list of texts, as it is."""
    return cast(func.to_json(value), Text)


def href_segment(identifier: ColumnElement[str]) -> ColumnElement[str]:
    """An id, percent-encoded as one segment of a path."""
    # Nearly all ids are plain, and a regular expression costs far less than a call of the escaping function.
    return case((identifier.regexp_match(constant(SAFE_ID)), identifier), else_=func.href_escape(identifier))


def href(path: str, identifier: ColumnElement[str]) -> ColumnElement[str]:
    """The inside of a JSON string: the absolute address of a record."""
    return base_url().concat(constant(f"/{path}/")).concat(href_segment(identifier))


def ref_json(kind: str, path: str, identifier: ColumnElement[str]) -> ColumnElement[str]:
    """A reference: {"href": ..., "sourcedId": ..., "type": ...}."""
    return (
        constant('{"href":"')
        .concat(href(path, identifier))
        .concat(constant('","sourcedId":'))
        .concat(text_json(identifier))
        .concat(constant(f',"type":"{kind}"}}'))
    )


def object_json(pairs: Iterable[tuple[str, ColumnElement[str]]]) -> ColumnElement[str]:
    """A JSON object of (name, JSON text) pairs; a pair whose text is NULL is left out."""
    members = [constant(f'"{name}":').concat(value) for name, value in pairs]
    return constant("{").concat(func.concat_ws(constant(","), *members)).concat(constant("}"))


def list_json(texts: ColumnElement[str]) -> ColumnElement[str]:
    """A JSON array around the aggregated, comma-joined texts of its items; NULL where there are none."""
    return constant("[").concat(texts).concat(constant("]"))


def only_if(condition: ColumnElement[bool], value: ColumnElement[Any]) -> ColumnElement[Any]:
    """The value where the condition holds, else NULL."""
    return case((condition, value), else_=null())


def nothing() -> ColumnElement[str]:
    """The text of a value that is never there."""
    return cast(null(), Text)


def entries(stored: ColumnElement[Any], name: str) -> TableValuedAlias:
    """The entries of a stored JSON list as rows: columns `value` and `ordinality`, beside the row that stores it."""
    rows = func.jsonb_array_elements(stored)
    return rows.table_valued(column("value", JSONB), with_ordinality="ordinality", name=name).render_derived()


def member(entry: FromClause, name: str) -> ColumnElement[str]:
    """A text member of such an entry."""
    return collate(entry.c.value.op("->>", return_type=Text())(constant(name)), "C")
