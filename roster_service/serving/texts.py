"""The statement that makes the JSON texts of a page's records, in the database, from the records themselves.

Nothing is stored: a text has what the caller sees of the record at this moment. The root of hrefs differs between
requests, so the texts have the placeholder `HREF_ROOT` in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import aggregate_order_by

from roster_service.db import tables
from roster_service.db.tables import CText, CTexts
from roster_service.roster import json_text
from roster_service.serving.departures import (
    has_departures,
    make_departure_json,
    may_show_departure_of_visible,
    select_departures,
)
from roster_service.serving.plan import QueryShape, ResourceView
from roster_service.serving.statements import Driver, get_key_column, make_collection_condition, make_record_json

# The database joins this many texts into one row: fewer rows to transfer, and no row is large.
BATCH_SIZE = 100


def select_texts(
    shape: QueryShape, ids: sa.ColumnElement[Any], *, backwards: bool
) -> sa.Select[str, int, Sequence[str], int]:
    """Returns the SELECT of (JSON texts joined by commas, number of texts, people, number of the row).

    Each row has up to `BATCH_SIZE` records. People: the ids of the people whose records these are, NULL for records of
    no person. `ids`: the array of the records' ids, which the path has selected.
    `backwards`: whether the texts are in the reverse order of `ids`. The statement checks visibility again, and leaves
    out records that are not visible.
    """
    # OFFSET 0 makes PostgreSQL evaluate the array once. It is no CTE, so that it can be beside the source of the ids.
    listed = sa.select(sa.type_coerce(ids, CTexts).label("ids")).offset(0).subquery("listed")
    starts = (
        sa.func.generate_series(0, sa.func.cardinality(listed.c.ids) - 1, BATCH_SIZE)
        .table_valued("start", name="starts")
        .render_derived()
    )
    start = sa.cast(starts.c.start, sa.Integer)
    page = (
        sa.func.unnest(listed.c.ids[start + 1 : start + BATCH_SIZE])
        .table_valued(sa.column("id", CText), with_ordinality="position", name="page")
        .render_derived()
    )
    found = shape.view.record.table
    is_found = (get_key_column(shape) == page.c.id) & make_collection_condition(shape, Driver.FILTER)
    body = make_record_json(shape)
    person = get_person(shape.view)
    shown: sa.FromClause = page.join(found, is_found)
    is_shown: sa.ColumnElement[bool] = sa.true()
    if has_departures(shape):
        # Of a record that is seen, PostgreSQL then looks for no departure.
        may_have_left = sa.true() if may_show_departure_of_visible(shape) else found.c.sourced_id.is_(None)
        of_page = (tables.departures.c.sourced_id == page.c.id, may_have_left)
        departed = select_departures(shape, *of_page).lateral("departed")
        has_left = departed.c.sourced_id.is_not(None)
        body = sa.case((has_left, make_departure_json(shape, departed)), else_=body)
        person = sa.case((has_left, departed.c.person_id), else_=person)
        shown = page.outerjoin(found, is_found).outerjoin(departed, sa.true())
        is_shown = has_left | found.c.sourced_id.is_not(None)
    position = page.c.position.desc() if backwards else page.c.position.asc()
    joined = sa.func.string_agg(body, aggregate_order_by(json_text.constant(","), position), type_=CText)
    people = sa.null() if shape.view.record.person is None else sa.func.array_agg(person)
    # The text has one place, since PostgreSQL makes it anew at each.
    batch = (
        sa.select(
            joined.label("body"), sa.func.count().label("records"), sa.type_coerce(people, CTexts).label("people")
        )
        .select_from(shown)
        .where(is_shown)
        .correlate(listed, starts)
        .lateral("batch")
    )
    number = -start if backwards else start
    texts = sa.select(batch.c.body, batch.c.records, batch.c.people, number.label("number"))
    return texts.select_from(listed.join(starts, sa.true()).join(batch, sa.true())).where(batch.c.records > 0)


def get_person(view: ResourceView) -> sa.ColumnElement[Any]:
    """Returns the expression of the person whose record a row is; NULL for a record of no person."""
    person = view.record.person
    return sa.null() if person is None else person
