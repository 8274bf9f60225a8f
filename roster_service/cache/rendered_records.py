"""The JSON texts of records: rendered ones, which a page costs the reading of, or made live from the records.

A rendered record is right for each caller to whom its required orgs are granted (`required_orgs.py`);
it passes both layers of visibility by itself. Whoever misses one makes the texts of the same records live.

The root of refs, which each request has its own of, is not in a text: `HREF_ROOT` stands in its place.
"""

from __future__ import annotations

import functools
import hashlib
from enum import Enum
from typing import Any

from sqlalchemy import ColumnElement, FromClause, Integer, Select, column, func, select, true, type_coerce
from sqlalchemy import cast as sql_cast
from sqlalchemy.dialects.postgresql import aggregate_order_by

from roster_service.cache.required_orgs import find_required_orgs, has_rendered_records
from roster_service.db import json_text
from roster_service.db.prepared_statements import prepare
from roster_service.db.tables import CText, CTexts, rendered_records, renditions
from roster_service.db.visibility import rendered_record_is_visible
from roster_service.query.plan import QueryShape, ResourceView
from roster_service.query.statements import (
    STATEMENT_CACHE_SIZE,
    Driver,
    get_key_column,
    make_collection_condition,
    make_record_json,
)
from roster_service.schemas.versions import VERSIONS

# So many texts are joined by the database: fewer rows to carry, and none that is large.
BATCH_SIZE = 100
# Students of the vendor interface are put together for each request, and are not among them.
_RECORDS = frozenset(record for version in VERSIONS for record in version.records.values())


class TextSource(Enum):
    """Where the texts of an answer come from."""

    RENDERED = "rendered records"
    LIVE = "the records themselves"


def has_rendition(view: ResourceView) -> bool:
    """Whether records of a view are rendered; those of small collections are not."""
    return view.record in _RECORDS and has_rendered_records(view.record.table)


def list_text_sources(shape: QueryShape) -> tuple[TextSource, ...]:
    """Where the texts of an outline are looked for, in this order. Rendered records have all fields of their view."""
    is_whole = has_rendition(shape.view) and shape.fields == tuple(shape.view.fields)
    return (TextSource.RENDERED, TextSource.LIVE) if is_whole else (TextSource.LIVE,)


def make_full_json(view: ResourceView) -> ColumnElement[str]:
    """The JSON text of a record with all fields of its view."""
    return json_text.object_json((name, field.json(view.rights)) for name, field in view.fields.items())


@functools.lru_cache(STATEMENT_CACHE_SIZE)
def make_rendition_key(view: ResourceView) -> str:
    """The key of a view's rendition: a hash of the expressions that its records are rendered by, so that nothing which
    changes a text can be forgotten. Views that differ in none of these share a rendition."""
    required = find_required_orgs(view.record.table, view.rights)
    made = select(make_full_json(view), required.orgs, required.guardians, required.condition)
    return hashlib.sha256(prepare(made).text.encode()).hexdigest()


def select_texts(
    shape: QueryShape, ids: ColumnElement[Any], source: TextSource, *, backwards: bool
) -> Select[str, int, int]:
    """(JSON texts, joined by commas; how many; the number of the row) of up to `BATCH_SIZE` records in each row,
    for the records whose ids are in the list `ids`. `backwards`: from the end of the list.

    The ids are those of records that the path means. That the caller may see them is asked again, of the rendered
    record or of the record itself; what is not visible, or not rendered, is left out.
    """
    # Evaluated once; and no CTE, so that it may lie beside what the ids come from.
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
    position = page.c.position.desc() if backwards else page.c.position.asc()
    joined = func.string_agg(body, aggregate_order_by(json_text.constant(","), position), type_=CText)
    batch = (
        select(joined.label("body"), func.count().label("records"))
        .select_from(page.join(found, is_found))
        .correlate(listed, starts)
        .lateral("batch")
    )
    number = -start if backwards else start
    texts = select(batch.c.body, batch.c.records, number.label("number"))
    return texts.select_from(listed.join(starts, true()).join(batch, true())).where(batch.c.records > 0)


def select_rendered_text(view: ResourceView, sourced_id: ColumnElement[str]) -> Select[str]:
    """The rendered text of one record; no row where there is none that the caller may see."""
    return select(rendered_records.c.body).where(rendered_records.c.sourced_id == sourced_id, _is_visible(view))


def _is_visible(view: ResourceView) -> ColumnElement[bool]:
    rendition = select(renditions.c.id).where(renditions.c.key == make_rendition_key(view)).scalar_subquery()
    return (rendered_records.c.rendition_id == rendition) & rendered_record_is_visible(view.rights)
