"""The statements that read for an admitted caller: state and ids of a page, and the texts of its records.

They run in the same round trip as the admission, so they always give at least one row. The columns of the state are
`visible_set`, `revision`, `as_of` and `deletions_since`. The first is NULL where the database refused the admission,
`NO_SLOT` where the vendor has no free slot, and `NO_GRANT` where it has no grant: then the others mean nothing.

Nothing is stored: a text has what the caller sees of the record at this moment. Hardly any page shows a departure, and
to look for them takes a tenth of the time of a page. So a page or record is read without them first, and once more with
them if that leaves something out (`list_forms`, `list_page_forms`).

The root of hrefs differs between requests, so the texts have the placeholder `HREF_ROOT` in its place.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import aggregate_order_by

from roster_service.db import tables
from roster_service.db.frozen_sql import freeze_select
from roster_service.db.prepared_statements import PreparedStatement, Statement, compile_statement
from roster_service.db.tables import WHOLE, CText, CTexts, Stamp, orderings, visible_feeds
from roster_service.roster import json_text
from roster_service.roster.visibility import (
    VENDOR,
    find_visible_set,
    read_admission,
    read_client_instant,
    read_refusal,
    select_whole_districts,
)
from roster_service.serving import statements
from roster_service.serving.departures import (
    has_departures,
    make_departure_json,
    may_show_departure_of_visible,
    select_departures,
)
from roster_service.serving.ordering_statements import LIMIT, join_orderings, select_page_ids
from roster_service.serving.path_filters import ListFilter, PathFilter, everything, no_condition
from roster_service.serving.plan import QueryShape, ResourceView
from roster_service.serving.pulls import list_pull_columns, make_pull_cte, select_asked_parts
from roster_service.serving.shown_parts import count_values, find_values, name_parts
from roster_service.serving.statements import RECORD, STATEMENT_CACHE_SIZE, Driver


def _select_state() -> sa.Select[*tuple[Any, ...]]:
    """One row: what the admitted caller sees, and the state of the roster for it."""
    one = sa.select(read_admission().label("admission")).subquery("one")
    seen = visible_feeds.alias()
    is_whole = (seen.c.vendor_id == VENDOR) & (seen.c.feed_id == WHOLE)
    visible_set = sa.func.coalesce(sa.case((one.c.admission.is_not(None), find_visible_set(seen.c))), read_refusal())
    # GREATEST passes over NULL, as for a vendor that was admitted without a client.
    as_of = sa.func.greatest(seen.c.as_of, read_client_instant("as_of"), type_=Stamp).label("as_of")
    since = sa.func.greatest(seen.c.deletions_since, read_client_instant("floor"), type_=Stamp).label("deletions_since")
    columns = (visible_set.label("visible_set"), seen.c.revision, as_of, since)
    return sa.select(*columns).select_from(one.outerjoin(seen, is_whole))


STATE_STATEMENT = _select_state()


@functools.cache
def _make_state_cte() -> sa.CTE:
    return freeze_select(_select_state(), "state")


def _select_state_and_pull(pull: sa.CTE) -> sa.Select[*tuple[Any, ...]]:
    state = _select_state().cte("state")
    return sa.select(*state.c, *list_pull_columns(pull)).select_from(state.outerjoin(pull, sa.true()))


@functools.cache
def make_collection_state_statement() -> sa.Select[*tuple[Any, ...]]:
    """Returns the statement that reads the state of the roster and the pull that a request belongs to."""
    return _select_state_and_pull(make_pull_cte())


@functools.cache
def _make_collection_state_cte() -> sa.CTE:
    return freeze_select(make_collection_state_statement(), "state")


def make_ordered_page_statement(shape: QueryShape, departed: bool) -> sa.Select[*tuple[Any, ...]]:
    """Returns the statement that reads a page from the orderings whose hash is bound as `query`. `departed`: as for
    `select_texts`.

    Columns: the state, the pull, `total`, `sees_districts` (whether the caller sees whole districts), and those of
    `select_texts`. There is one row for each text, in the order of the page. `total` is NULL where one of the orderings
    is not stored (with a limit of 0: not even counted); only then does `sees_districts` have a value. `shape`: without
    its sort, which the statement does not depend on.

    The path filter decides the ordering, and not the texts: a page of a pull also has the records that a sync has taken
    out of the collection since, as departures where they are ones.
    """
    found = _make_ordered_ids(shape.descending)
    ids = sa.select(found.c.ids).scalar_subquery()
    texts = select_texts(_remove_path(shape, everything), ids, departed=departed, backwards=shape.descending)
    head = [column for column in found.c if column.name != "ids"]
    return _put_beside(head, found, texts)


@functools.cache
def _make_ordered_ids(descending: bool) -> sa.CTE:
    """One row: the state, the pull, `total`, `sees_districts`, and the `ids` of the page, in ascending order."""
    pull = make_pull_cte()
    asked = select_asked_parts(pull).cte("asked")
    before = sa.func.sum(orderings.c.total).over(order_by=asked.c.feed_id) - orderings.c.total
    is_stored = sa.or_(orderings.c.bytes.is_not(None), sa.and_(LIMIT == 0, orderings.c.id.is_not(None)))
    columns = (
        orderings.c.id,
        orderings.c.total,
        sa.cast(before, sa.BigInteger).label("start"),
        is_stored.label("is_stored"),
    )
    parts = sa.select(*columns).select_from(join_orderings(asked)).cte("parts")
    sum_of_totals = sa.cast(sa.func.coalesce(sa.func.sum(parts.c.total), 0), sa.BigInteger)
    is_whole = sa.func.coalesce(sa.func.bool_and(parts.c.is_stored), sa.true())
    collection = sa.select(sa.case((is_whole, sum_of_totals)).label("total")).select_from(parts).cte("collection")
    ids = select_page_ids(parts, collection, descending=descending)
    asks_districts = sa.case((collection.c.total.is_(None), sa.exists(select_whole_districts())))
    state = _select_state_and_pull(pull).cte("shown_state")
    found = (*state.c, collection.c.total, asks_districts.label("sees_districts"), ids.label("ids"))
    return freeze_select(sa.select(*found).select_from(state.join(collection, sa.true())), "found")


def _remove_path(shape: QueryShape, nested: PathFilter) -> QueryShape:
    """Returns a shape without the condition of its path, which has selected the ids already. `nested`: the path filter
    in place of one that is no list."""
    listed = shape.path_filter.without_condition if isinstance(shape.path_filter, ListFilter) else nested
    return dataclasses.replace(shape, path_filter=listed)


def make_found_page_statement(shape: QueryShape, found: sa.CTE) -> sa.Select[*tuple[Any, ...]]:
    """Returns the statement that reads the page whose ids and total are in `found`.

    Columns: the state, the pull, `total`, and those of `select_texts`. There is one row for each text, in the order of
    the page. `shape`: as for `make_ordered_page_statement`.
    """
    state = _make_collection_state_cte()
    ids = sa.select(found.c.ids).scalar_subquery()
    shown = _remove_path(shape, no_condition)
    texts = select_texts(shown, ids, departed=has_departures(shown), backwards=False)
    return _put_beside((*state.c, found.c.total), state.join(found, sa.true()), texts)


def _put_beside(
    head: Iterable[sa.ColumnElement[Any]], source: sa.FromClause, texts: sa.Select[*tuple[Any, ...]]
) -> sa.Select[*tuple[Any, ...]]:
    """Returns rows of `head` and one text each, in order; one row with NULL as text where there are no texts."""
    shown = texts.subquery("shown")
    columns = (shown.c.body, shown.c.records, shown.c.people, shown.c.named, shown.c.parts)
    rows = sa.select(*head, *columns).select_from(source.outerjoin(shown, sa.true()))
    return rows.order_by(shown.c.number)


def make_record_statement(shape: QueryShape, departed: bool) -> sa.Select[*tuple[Any, ...]]:
    """Returns the statement that reads the record whose sourcedId is bound as `path_sourcedId`. `departed`: as for
    `select_texts`.

    It gives one row: the state, `body` (the JSON text or NULL), `person` (whose record it is, or NULL), and `parts`, as
    in `select_texts`.
    """
    state = _make_state_cte()
    table = shape.view.record.table
    named = (statements.make_record_json(shape).label("body"), get_person(shape.view).label("person"))
    own = find_values(shape)
    record = (
        sa.select(*named, *own)
        .select_from(statements.join_rows(shape, table))
        .where(statements.get_key_column(shape) == RECORD, statements.make_collection_condition(shape, Driver.FILTER))
    )
    if departed:
        former = select_departures(shape, tables.departures.c.sourced_id == RECORD).subquery("former")
        blank = [sa.false().label(column.name) for column in own]
        # As in a list: a departure has nothing of the person but the id.
        nobody = sa.cast(sa.null(), CText).label("person")
        # A text without the id and the stamp names no column of the departure.
        left = sa.select(make_departure_json(shape, former).label("body"), nobody, *blank).select_from(former)
        # In 1.1, the list may have a record of which a role has ended.
        record = sa.select(*sa.union_all(left, record).subquery("either").c).limit(1)
    # The text has one place, since PostgreSQL makes it anew at each.
    found = record.offset(0).subquery("record")
    columns = (found.c.body, found.c.person, name_parts(shape, found).label("parts"))
    return sa.select(*state.c, *columns).select_from(state.outerjoin(found, sa.true()))


@functools.lru_cache(STATEMENT_CACHE_SIZE)
def list_forms(shape: QueryShape) -> tuple[bool, ...]:
    """Returns the values of `departed` with which a record of a shape is read in turn, until it is there."""
    if not has_departures(shape):
        return (False,)
    return (True,) if may_show_departure_of_visible(shape) else (False, True)


@functools.lru_cache(STATEMENT_CACHE_SIZE)
def list_page_forms(shape: QueryShape) -> tuple[bool, ...]:
    """Returns the same for a page of an ordering, until none of its records is left out. Below a parent, too, a page of
    a pull shows what has left since."""
    return list_forms(_remove_path(shape, everything))


def _keep_prepared(make: Callable[..., Statement]) -> Callable[..., PreparedStatement]:
    """Returns `make` with a cache of the prepared statements; the statements themselves are freed."""
    return functools.lru_cache(STATEMENT_CACHE_SIZE)(lambda *given: compile_statement(make(*given)))


prepare_ordered_page = _keep_prepared(make_ordered_page_statement)
prepare_found_page = _keep_prepared(lambda shape, search: make_found_page_statement(shape, search.find()))
prepare_record = _keep_prepared(make_record_statement)


# The database joins this many texts into one row: fewer rows to transfer, and no row is large.
BATCH_SIZE = 100


def select_texts(
    shape: QueryShape, ids: sa.ColumnElement[Any], *, departed: bool, backwards: bool
) -> sa.Select[*tuple[Any, ...]]:
    """Returns the SELECT of (JSON texts joined by commas, number of texts, people, named, parts, number of the row).

    Each row has up to `BATCH_SIZE` records. People: the ids of the people whose records these are, NULL for records of
    no person; named: of those whom the texts name beside these, as `list_named` has them; parts: the number of the
    parts of people in the texts. `ids`: the array of the records' ids, which the path has selected. `departed`: whether
    what has left is shown, too, of a list that has departures. `backwards`: whether the texts are in the reverse order
    of `ids`. The statement checks visibility again, and leaves out records that are not visible.
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
    is_found = (statements.get_key_column(shape) == page.c.id) & statements.make_collection_condition(
        shape, Driver.FILTER
    )
    body = statements.make_record_json(shape)
    person = get_person(shape.view)
    names = statements.list_named(shape)
    named: sa.ColumnElement[Any] = sa.func.nullif(sa.func.concat_ws(",", *names), "") if names else sa.null()
    shown: sa.FromClause = page.join(found, is_found)
    is_shown: sa.ColumnElement[bool] = sa.true()
    has_record = None
    if departed:
        # Of a record that is seen, PostgreSQL then looks for no departure.
        may_have_left = sa.true() if may_show_departure_of_visible(shape) else found.c.sourced_id.is_(None)
        of_page = (tables.departures.c.sourced_id == page.c.id, may_have_left)
        former = select_departures(shape, *of_page).lateral("former")
        has_left = former.c.sourced_id.is_not(None)
        body = sa.case((has_left, make_departure_json(shape, former)), else_=body)
        # A departure has nothing of the person but the id, so its page discloses no record of them.
        person, named = (sa.case((has_left, sa.null()), else_=each) for each in (person, named))
        has_record = ~has_left
        shown = page.outerjoin(found, is_found).outerjoin(former, sa.true())
        is_shown = has_left | found.c.sourced_id.is_not(None)
    shown = statements.join_rows(shape, shown)
    position = page.c.position.desc() if backwards else page.c.position.asc()
    joined = sa.func.string_agg(body, aggregate_order_by(json_text.constant(","), position), type_=CText)
    people = sa.null() if shape.view.record.person is None else sa.func.array_agg(person).filter(person.is_not(None))
    # The text has one place, since PostgreSQL makes it anew at each.
    batch = (
        sa.select(
            joined.label("body"),
            sa.func.count().label("records"),
            sa.type_coerce(people, CTexts).label("people"),
            sa.type_coerce(sa.func.string_agg(named, ",") if names else sa.null(), CText).label("named"),
            *count_values(shape, has_record),
        )
        .select_from(shown)
        .where(is_shown)
        .correlate(listed, starts)
        .lateral("batch")
    )
    number = -start if backwards else start
    parts = name_parts(shape, batch).label("parts")
    texts = sa.select(batch.c.body, batch.c.records, batch.c.people, batch.c.named, parts, number.label("number"))
    return texts.select_from(listed.join(starts, sa.true()).join(batch, sa.true())).where(batch.c.records > 0)


def get_person(view: ResourceView) -> sa.ColumnElement[Any]:
    """Returns the expression of the person whose record a row is; NULL for a record of no person."""
    person = view.record.person
    return sa.null() if person is None else person
