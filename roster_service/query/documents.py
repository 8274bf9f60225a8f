"""Records that are kept as JSON texts, so that a page costs the reading of them.

A document is the text of one record, made once for all callers to whom it would look the same, with what a caller must
have been granted for that (roster_service/db/needs.py). It passes both locks by itself: the condition here, and a
policy of row-level security. What they keep back, and what is not there, is made of the record on the spot: shelves may
be empty, half filled or of an older roster at any time, and pages are right.

The root of refs, which each request has its own of, is not in a text: `BASE` stands in its place.
"""

from __future__ import annotations

import functools
import hashlib
from typing import Any

from sqlalchemy import (
    Boolean,
    ColumnElement,
    FromClause,
    Integer,
    Select,
    any_,
    case,
    column,
    func,
    literal_column,
    select,
    true,
    type_coerce,
    union_all,
)
from sqlalchemy import cast as sql_cast
from sqlalchemy.dialects.postgresql import aggregate_order_by

from roster_service.access.known_callers import bind_facts
from roster_service.db import json_text
from roster_service.db.document_tables import documents, shelves
from roster_service.db.needs import has_documents, needs_of
from roster_service.db.prepared import prepare
from roster_service.db.tables import CText, CTexts, roster_state
from roster_service.db.visibility import document_is_visible, document_is_visible_by_district
from roster_service.query.plan import Outline, View
from roster_service.query.selections import everything
from roster_service.query.statements import KEPT, RECORD, Driver, admits, record_json
from roster_service.schemas.versions import VERSIONS

# Stands for the root of refs. JSON writes this character as an escape, so it is nowhere else in a text.
BASE = "\x01"
# So many texts are joined by the database: fewer rows to carry, and none that is large.
BATCH = 100
# Students of the vendor interface are put together for each request, and are not among them.
_RECORDS = frozenset(record for version in VERSIONS for record in version.records.values())


def has_shelf(view: View) -> bool:
    """Whether documents are kept of a view."""
    return view.record in _RECORDS and has_documents(view.record.table)


def reads_documents(outline: Outline) -> bool:
    """Whether its records can be documents: those of which all fields are wanted."""
    return has_shelf(outline.view) and outline.fields == tuple(outline.view.fields)


def whole_json(view: View) -> ColumnElement[str]:
    """The JSON text of a record with all fields of its view."""
    return json_text.object_json((name, field.json(view.sight)) for name, field in view.fields.items())


@functools.lru_cache(KEPT)
def key_of(view: View) -> str:
    """The key of a view's shelf: the very text of what its documents are made by, so that nothing which changes one can
    be forgotten. Views that differ in nothing of it share a shelf."""
    needs = needs_of(view.record.table, view.sight)
    made = select(whole_json(view), needs.orgs, needs.guardians, needs.condition)
    return hashlib.sha256(prepare(made).text.encode()).hexdigest()


def _shelf_of(view: View) -> ColumnElement[int]:
    """The id of the view's shelf; NULL where there is none of this roster."""
    found = select(shelves.c.id).join_from(shelves, roster_state, roster_state.c.revision == shelves.c.revision)
    return found.where(shelves.c.key == key_of(view)).scalar_subquery()


def _is_document(view: View, wanted: ColumnElement[bool]) -> ColumnElement[bool]:
    return (documents.c.shelf == _shelf_of(view)) & wanted & document_is_visible(view.sight)


def batches_statement(outline: Outline, ids: ColumnElement[Any], *, backwards: bool) -> Select[str, int]:
    """(JSON texts, joined by commas; how many they are) of up to `BATCH` records in each row, for the records whose ids
    are in the list `ids`; NULL and 0 where there are none. `backwards`: from the end of the list to its begin.

    Whoever asks knows that the path means them, and that the caller may see them: a text that is kept says the latter
    again, one that is made asks for both again.
    """
    batch = _cut(ids, backwards=backwards)
    kept = _kept(outline, batch, backwards=backwards)
    whole = kept.c.records == func.cardinality(batch.c.ids)
    shown = union_all(
        select(kept.c.body, kept.c.records).select_from(_one()).where(whole).correlate(kept, batch),
        _mixed(outline, batch, backwards=backwards).where(~whole).correlate(kept, batch),
    ).lateral("shown")
    return (
        select(shown.c.body, shown.c.records)
        .select_from(batch.join(kept, true()).join(shown, true()))
        .where(shown.c.records > 0)
        .order_by(_order_of(batch, backwards=backwards))
    )


def shelved_batches_statement(outline: Outline, ids: ColumnElement[Any], *, backwards: bool) -> Select[str, int]:
    """The same of those that are documents, and no others: getting the rest ready costs more than reading a page."""
    batch = _cut(ids, backwards=backwards)
    kept = _kept(outline, batch, backwards=backwards)
    found = select(kept.c.body, kept.c.records).select_from(batch.join(kept, true())).where(kept.c.records > 0)
    return found.order_by(_order_of(batch, backwards=backwards))


def _cut(ids: ColumnElement[Any], *, backwards: bool) -> FromClause:
    """A list of ids, cut in batches."""
    listed = select(type_coerce(ids, CTexts).label("ids")).cte("listed").prefix_with("MATERIALIZED")
    starts = (
        func.generate_series(0, func.cardinality(listed.c.ids) - 1, BATCH)
        .table_valued("start", name="starts")
        .render_derived()
    )
    start = sql_cast(starts.c.start, Integer)
    # Sorted here, while a row is a list of ids: what is joined to each row in turn leaves their order as it is.
    return (
        select(listed.c.ids[start + 1 : start + BATCH].label("ids"), start.label("start"))
        .select_from(listed.join(starts, true()))
        .order_by(start.desc() if backwards else start.asc())
        .subquery("batch")
    )


def _order_of(batch: FromClause, *, backwards: bool) -> ColumnElement[Any]:
    return batch.c.start.desc() if backwards else batch.c.start.asc()


def _kept(outline: Outline, batch: FromClause, *, backwards: bool) -> FromClause:
    """The documents of a batch."""
    number = func.count().label("records")
    if outline.sort in (None, "sourcedId"):
        # The index gives them in their order, in one pass.
        key = documents.c.sourced_id
        joined = _join(documents.c.body, key.desc() if outline.descending else key.asc())
        return select(joined, number).where(_is_document(outline.view, key == any_(batch.c.ids))).lateral("kept")
    page = _page(batch)
    joined = _join(documents.c.body, page.c.place.desc() if backwards else page.c.place.asc())
    is_document = _is_document(outline.view, documents.c.sourced_id == page.c.id)
    return select(joined, number).select_from(page.join(documents, is_document)).lateral("kept")


def _mixed(outline: Outline, batch: FromClause, *, backwards: bool) -> Select[str, int]:
    """The documents of a batch, and what else there is of it, made of the records."""
    table, page = outline.view.record.table, _page(batch)
    missing = case((documents.c.sourced_id.is_(None), page.c.id))
    live = (
        select(record_json(outline).label("body"))
        .select_from(table)
        .where(table.c.sourced_id == missing, admits(outline, Driver.FILTER))
        .correlate(documents, page)
        .lateral("live")
    )
    is_document = _is_document(outline.view, documents.c.sourced_id == page.c.id)
    body = func.coalesce(documents.c.body, live.c.body)
    joined = _join(body, page.c.place.desc() if backwards else page.c.place.asc())
    return select(joined, func.count(body).label("records")).select_from(
        page.outerjoin(documents, is_document).outerjoin(live, true())
    )


def _page(batch: FromClause) -> Any:
    """The ids of a batch as rows, with their places."""
    rows = func.unnest(batch.c.ids).table_valued(column("id", CText), with_ordinality="place", name="page")
    return rows.render_derived()


def _join(body: ColumnElement[str], order: ColumnElement[Any]) -> ColumnElement[str]:
    return func.string_agg(body, aggregate_order_by(json_text.constant(","), order), type_=CText).label("body")


def _one() -> FromClause:
    """A single row, where something has to stand."""
    return select(literal_column("1")).subquery("one")


@functools.lru_cache(KEPT)
def shelved_single_statement(outline: Outline) -> Select[str] | None:
    """The document of the one record whose sourcedId is bound as `path_sourcedId`; no row where there is none. None for
    outlines that have to ask the record itself."""
    if not reads_documents(outline) or outline.selection is not everything:
        return None
    return select(documents.c.body).where(_is_document(outline.view, documents.c.sourced_id == RECORD))


@functools.lru_cache(KEPT)
def recalled_single_statement(outline: Outline) -> Select[str] | None:
    """The same, for a caller with whole districts and no single schools, admitted by the very function that finds the
    document; bound to the facts of a known caller as well."""
    if shelved_single_statement(outline) is None:
        return None
    key = json_text.constant(key_of(outline.view))
    columns = (column("body", CText), column("district_id", CText), column("needs_guardians", Boolean))
    recalled = func.recall_document(*bind_facts(), key, RECORD).table_valued(*columns, name="recalled")
    return select(recalled.c.body).where(document_is_visible_by_district(recalled, outline.view.sight))


@functools.lru_cache(KEPT)
def single_statement(outline: Outline) -> Select[str]:
    """The JSON text of the one record whose sourcedId is bound as `path_sourcedId`; no row where there is none."""
    table = outline.view.record.table
    live = record_json(outline).label("body")
    asked = select(live).where(table.c.sourced_id == RECORD, admits(outline, Driver.FILTER))
    if not reads_documents(outline):
        return asked
    found = select(documents.c.body).where(_is_document(outline.view, documents.c.sourced_id == RECORD))
    if outline.selection is not everything:
        # Whether the path means it is a question to the record.
        return asked.with_only_columns(func.coalesce(found.scalar_subquery(), live))
    kept = found.subquery("kept")
    missing = asked.where(kept.c.body.is_(None)).correlate(kept).lateral("live")
    body = func.coalesce(kept.c.body, missing.c.body)
    return select(body).select_from(_one().outerjoin(kept, true()).outerjoin(missing, true())).where(body.is_not(None))
