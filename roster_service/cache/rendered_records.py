"""The statements that read the JSON texts of records: stored (rendered records), or made live from the tables.

A rendered record is correct for each caller to whom its required orgs are granted (`required_orgs.py`); both layers of
visibility check this. Where a rendered record is missing or not visible, the request makes the texts of the page live.

The root of hrefs differs between requests, so the texts have the placeholder `HREF_ROOT` in its place.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from enum import Enum
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    FromClause,
    Integer,
    Select,
    case,
    column,
    func,
    literal_column,
    null,
    select,
    true,
    type_coerce,
)
from sqlalchemy import cast as sql_cast
from sqlalchemy.dialects.postgresql import aggregate_order_by

from roster_service.cache.required_orgs import find_required_orgs, has_rendered_records
from roster_service.db import json_text, tables
from roster_service.db.prepared_statements import prepare
from roster_service.db.tables import CText, CTexts, rendered_records
from roster_service.db.visibility import rendered_record_is_visible
from roster_service.query.departures import (
    has_departures,
    make_departure_json,
    may_show_departure_of_visible,
    select_departures,
)
from roster_service.query.plan import QueryShape, ResourceView
from roster_service.query.statements import (
    STATEMENT_CACHE_SIZE,
    Driver,
    get_key_column,
    make_collection_condition,
    make_record_json,
)
from roster_service.schemas.versions import VERSIONS

# The database joins this many texts into one row: fewer rows to transfer, and no row is large.
BATCH_SIZE = 100
# Of the hash that is the id of a rendition: enough that two renditions never get one id, and it fits into a bigint.
RENDITION_ID_BYTES = 7
# The records of the rostering interface. The students of the vendor interface are never rendered in advance.
_RECORDS = frozenset(record for version in VERSIONS for record in version.records.values())


class TextSource(Enum):
    """The source of the JSON texts of a response."""

    RENDERED = "rendered records"
    LIVE = "the records themselves"


def has_rendition(view: ResourceView) -> bool:
    """Whether the service renders the records of a view; it does not for small collections."""
    return view.record in _RECORDS and has_rendered_records(view.record.table)


def list_text_sources(shape: QueryShape) -> tuple[TextSource, ...]:
    """Returns the sources to try for a shape, in order. Rendered records always have all fields of their view."""
    is_whole = has_rendition(shape.view) and shape.fields == tuple(shape.view.fields)
    return (TextSource.RENDERED, TextSource.LIVE) if is_whole else (TextSource.LIVE,)


def make_full_json(view: ResourceView) -> ColumnElement[str]:
    """Returns the expression of a record's JSON text with all fields of its view."""
    return json_text.object_json((name, field.json(view.rights)) for name, field in view.fields.items())


def make_stored_person(view: ResourceView) -> ColumnElement[Any]:
    """Returns the expression of the person whom a rendered record stores: NULL where the record has the id of the
    person, or belongs to none."""
    person = view.record.person
    return null() if person is None else func.nullif(person, view.record.table.c.sourced_id)


@functools.lru_cache(STATEMENT_CACHE_SIZE)
def make_rendition_id(view: ResourceView) -> int:
    """Returns the id of a view's rendition: a hash of the SQL that renders its records.

    The SQL contains everything that changes a text, so nothing can be missing from the id. Views with the same SQL
    share a rendition.
    """
    required = find_required_orgs(view.record.table, view.rights)
    columns = (required.orgs, required.guardians, required.condition, make_stored_person(view))
    made = select(make_full_json(view), *columns)
    digest = hashlib.sha256(prepare(made).text.encode()).digest()
    return int.from_bytes(digest[:RENDITION_ID_BYTES], "big")


def select_texts(
    shape: QueryShape, ids: ColumnElement[Any], source: TextSource, *, backwards: bool
) -> Select[str, int, Sequence[str], int]:
    """Returns the SELECT of (JSON texts joined by commas, number of texts, people, number of the row).

    Each row has up to `BATCH_SIZE` records. People: the ids of the people whose records these are, NULL for records of
    no person. `ids`: the array of the records' ids, which the path has selected.
    `backwards`: whether the texts are in the reverse order of `ids`. The statement checks visibility again, on the
    rendered record or on the record itself. It leaves out records that are not visible or not rendered.
    """
    # OFFSET 0 makes PostgreSQL evaluate the array once. It is no CTE, so that it can be beside the source of the ids.
    listed = select(type_coerce(ids, CTexts).label("ids")).offset(0).subquery("listed")
    starts = (
        func.generate_series(0, func.cardinality(listed.c.ids) - 1, BATCH_SIZE)
        .table_valued("start", name="starts")
        .render_derived()
    )
    start = sql_cast(starts.c.start, Integer)
    page = (
        func.unnest(listed.c.ids[start + 1 : start + BATCH_SIZE])
        .table_valued(column("id", CText), with_ordinality="position", name="page")
        .render_derived()
    )
    if source is TextSource.RENDERED:
        found: FromClause = rendered_records
        is_found = (rendered_records.c.sourced_id == page.c.id) & _is_visible(shape.view)
        body: ColumnElement[str] = rendered_records.c.body
    else:
        found = shape.view.record.table
        is_found = (get_key_column(shape) == page.c.id) & make_collection_condition(shape, Driver.FILTER)
        body = make_record_json(shape)
    person = get_person(shape.view, source)
    shown: FromClause = page.join(found, is_found)
    is_shown: ColumnElement[bool] = true()
    if has_departures(shape) and (source is TextSource.LIVE or may_show_departure_of_visible(shape)):
        departed = select_departures(shape, tables.departures.c.sourced_id == page.c.id).lateral("departed")
        has_left = departed.c.sourced_id.is_not(None)
        body = case((has_left, make_departure_json(shape, departed)), else_=body)
        person = case((has_left, departed.c.person_id), else_=person)
        shown = page.outerjoin(found, is_found).outerjoin(departed, true())
        is_shown = has_left | found.c.sourced_id.is_not(None)
    position = page.c.position.desc() if backwards else page.c.position.asc()
    joined = func.string_agg(body, aggregate_order_by(json_text.constant(","), position), type_=CText)
    people = null() if shape.view.record.person is None else func.array_agg(person)
    # The text has one place, since PostgreSQL makes it anew at each.
    batch = (
        select(joined.label("body"), func.count().label("records"), type_coerce(people, CTexts).label("people"))
        .select_from(shown)
        .where(is_shown)
        .correlate(listed, starts)
        .lateral("batch")
    )
    number = -start if backwards else start
    texts = select(batch.c.body, batch.c.records, batch.c.people, number.label("number"))
    return texts.select_from(listed.join(starts, true()).join(batch, true())).where(batch.c.records > 0)


def select_rendered_text(view: ResourceView, sourced_id: ColumnElement[str]) -> Select[str, str]:
    """Returns the SELECT of a record's rendered text (`body`) and of the `person` whose record it is; it gives no row
    where none is visible to the caller."""
    text = select(rendered_records.c.body, get_person(view, TextSource.RENDERED).label("person"))
    return text.where(rendered_records.c.sourced_id == sourced_id, _is_visible(view))


def get_person(view: ResourceView, source: TextSource) -> ColumnElement[Any]:
    """Returns the expression of the person whose record a row of the source is; NULL for a record of no person."""
    person = view.record.person
    if person is None or source is TextSource.LIVE:
        return null() if person is None else person
    return func.coalesce(rendered_records.c.person_id, rendered_records.c.sourced_id)


def _is_visible(view: ResourceView) -> ColumnElement[bool]:
    # A constant, so that PostgreSQL plans with the size of this rendition.
    rendition = literal_column(str(make_rendition_id(view)), BigInteger)
    return (rendered_records.c.rendition_id == rendition) & rendered_record_is_visible(view.rights)
