"""SQL expressions for the JSON text of a value. NULL means that the record leaves the value out.

The expressions concatenate a record as text, pair by pair. `concat_ws` skips NULLs, so absent values need neither
`json_strip_nulls`, which would also strip inside `metadata`, nor `json_build_object`, which takes at most 50 pairs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

SAFE_ID = "^[A-Za-z0-9._~-]*$"
# Of PostgreSQL's to_char; the quotes are part of the JSON.
INSTANT_FORMAT = r'"\""YYYY-MM-DD"T"HH24:MI:SS.MS"Z\""'
DAY_FORMAT = r'"\""YYYY-MM-DD"\""'


def base_url() -> sa.BindParameter[str]:
    """The bound value of the root address of refs. The caller that binds it has to escape it for a JSON string."""
    return sa.bindparam("base_url", type_=sa.Text)


def constant(text: str) -> sa.ColumnElement[str]:
    """A literal piece of JSON in the statement. `text` must come from this code, never from a request."""
    return sa.literal_column("'" + text.replace("'", "''") + "'", sa.Text)


def text_json(value: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
    """A JSON string."""
    return sa.cast(sa.func.to_json(value), sa.Text)


def flag_json(value: sa.ColumnElement[bool]) -> sa.ColumnElement[str]:
    """The strings "true" and "false", as OneRoster writes booleans."""
    return sa.case((value, constant('"true"')), (~value, constant('"false"')), else_=sa.null())


def instant_json(value: sa.ColumnElement[object]) -> sa.ColumnElement[str]:
    """UTC with milliseconds: "2026-11-21T02:00:00.000Z"."""
    return sa.func.to_char(sa.func.timezone(constant("UTC"), value), constant(INSTANT_FORMAT))


def day_json(value: sa.ColumnElement[object]) -> sa.ColumnElement[str]:
    """ "2026-11-21"."""
    return sa.func.to_char(value, constant(DAY_FORMAT))


def stored_json(value: sa.ColumnElement[object]) -> sa.ColumnElement[str]:
    """A stored JSON value or a list of texts, as it is."""
    return sa.cast(sa.func.to_json(value), sa.Text)


def href_segment(identifier: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
    """An id, percent-encoded as one segment of a path."""
    # Nearly all ids need no escaping, and the regular expression is much faster than a call of the function.
    return sa.case((identifier.regexp_match(constant(SAFE_ID)), identifier), else_=sa.func.href_escape(identifier))


def href(path: str, identifier: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
    """The absolute address of a record, as the inside of a JSON string."""
    return base_url().concat(constant(f"/{path}/")).concat(href_segment(identifier))


def ref_json(kind: str, path: str, identifier: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
    """A reference: {"href": ..., "sourcedId": ..., "type": ...}."""
    return (
        constant('{"href":"')
        .concat(href(path, identifier))
        .concat(constant('","sourcedId":'))
        .concat(text_json(identifier))
        .concat(constant(f',"type":"{kind}"}}'))
    )


def object_json(pairs: Iterable[tuple[str, sa.ColumnElement[str]]]) -> sa.ColumnElement[str]:
    """A JSON object of (name, JSON text) pairs; a pair whose text is NULL is left out."""
    members = [constant(f'"{name}":').concat(value) for name, value in pairs]
    if not members:
        return constant("{}")
    return constant("{").concat(sa.func.concat_ws(constant(","), *members)).concat(constant("}"))


def list_json(texts: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
    """A JSON array. `texts`: the aggregated texts of its items, joined by commas; if it is NULL, so is the array."""
    return constant("[").concat(texts).concat(constant("]"))


def only_if(condition: sa.ColumnElement[bool], value: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """The value if the condition holds, else NULL."""
    return sa.case((condition, value), else_=sa.null())


def nothing() -> sa.ColumnElement[str]:
    """NULL: the text of a value that a record never has."""
    return sa.cast(sa.null(), sa.Text)


def entries(stored: sa.ColumnElement[Any], name: str) -> sa.TableValuedAlias:
    """The entries of a stored JSON list as rows with the columns `value` and `ordinality`, to be joined laterally with
    the row that stores the list."""
    rows = sa.func.jsonb_array_elements(stored)
    return rows.table_valued(sa.column("value", JSONB), with_ordinality="ordinality", name=name).render_derived()


def member(entry: sa.FromClause, name: str) -> sa.ColumnElement[str]:
    """A text member of an entry of `entries`."""
    return sa.collate(entry.c.value.op("->>", return_type=sa.Text())(constant(name)), "C")
