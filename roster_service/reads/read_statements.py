"""The statements that read for an admitted caller: each gives the state of the roster together with the records.

They run in the same round trip as the admission, so they always give at least one row. Its `visible_set` is NULL where
the database refused the admission, and `NO_SLOT` where the vendor has no free slot: then the other columns mean
nothing.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

from sqlalchemy import CTE, ColumnElement, FromClause, Select, case, exists, func, select, true

from roster_service.cache.ordering_statements import select_page_ids
from roster_service.cache.pulls import QUERY, choose_revision, make_pull_cte
from roster_service.cache.rendered_records import TextSource, select_rendered_text, select_texts
from roster_service.db.tables import orderings, roster_state
from roster_service.db.visibility import read_refusal, read_visible_set, select_whole_districts
from roster_service.query.path_filters import everything
from roster_service.query.plan import QueryShape
from roster_service.query.statements import (
    RECORD,
    STATEMENT_CACHE_SIZE,
    Driver,
    get_key_column,
    make_collection_condition,
    make_record_json,
    select_ids,
)


def _make_state_cte() -> CTE:
    state = roster_state.c
    admitted = func.coalesce(read_visible_set(), read_refusal())
    columns = (admitted.label("visible_set"), state.revision, state.as_of, state.deletions_since)
    return select(*columns).cte("state")


STATE_STATEMENT = select(*_make_state_cte().c)


@functools.cache
def make_collection_state_statement() -> Select[*tuple[Any, ...]]:
    """Returns the statement that reads the state of the roster (4) and the pull that a request belongs to (4)."""
    state, pull = _make_state_cte(), make_pull_cte()
    return select(*state.c, *pull.c).select_from(state.outerjoin(pull, true()))


@functools.lru_cache(STATEMENT_CACHE_SIZE)
def make_ordered_page_statement(shape: QueryShape, source: TextSource) -> Select[*tuple[Any, ...]]:
    """Returns the statement that reads a page from the ordering whose hash is bound as `query`.

    Columns: the state (4), the pull (4), total, bytes, whether the caller sees whole districts, JSON text, number of
    records in it. There is one row for each text, in the order of the page. `bytes` is 0 where only the count is
    stored. `total` is NULL where nothing is stored; only then does the next column have a value. `shape`: without its
    sort, which the statement does not depend on.

    The path filter decides the ordering, and not the texts: a page of a pull also has the records that a sync has taken
    out of the collection since.
    """
    state, pull = _make_state_cte(), make_pull_cte()
    asked = state.outerjoin(pull, true())
    is_own = (
        (orderings.c.query == QUERY)
        & (orderings.c.visible_set == state.c.visible_set)
        & (orderings.c.revision == choose_revision(state, pull))
    )
    found = select(orderings.c.id, orderings.c.total, orderings.c.bytes).select_from(asked.join(orderings, is_own))
    ordering = found.cte("ordering")
    ids = select_page_ids(ordering, descending=shape.descending)
    sees_districts = case((ordering.c.id.is_(None), exists(select_whole_districts())))
    head = (*state.c, *pull.c, ordering.c.total, ordering.c.bytes, sees_districts)
    texts = select_texts(dataclasses.replace(shape, path_filter=everything), ids, source, backwards=shape.descending)
    return _put_beside(head, asked.outerjoin(ordering, true()), texts)


def make_found_page_statement(shape: QueryShape, found: CTE, source: TextSource) -> Select[*tuple[Any, ...]]:
    """Returns the statement that reads the page whose ids and total are in `found`.

    Columns: the state (4), total, JSON text, number of records in it. There is one row for each text, in the order of
    the page. `shape`: as for `make_ordered_page_statement`.
    """
    state = _make_state_cte()
    ids = select(found.c.ids).scalar_subquery()
    texts = select_texts(shape, ids, source, backwards=False)
    return _put_beside((*state.c, found.c.total), state.join(found, true()), texts)


# Returns the same statement object for equal arguments, so that each connection plans it once.
make_shared_page_statement = functools.lru_cache(STATEMENT_CACHE_SIZE)(make_found_page_statement)


def _put_beside(
    head: tuple[ColumnElement[Any], ...], source: FromClause, texts: Select[str, int, int]
) -> Select[*tuple[Any, ...]]:
    """Returns rows of `head` and one text each, in order; one row with NULL as text where there are no texts."""
    shown = texts.subquery("shown")
    rows = select(*head, shown.c.body, shown.c.records).select_from(source.outerjoin(shown, true()))
    return rows.order_by(shown.c.number)


@functools.lru_cache(STATEMENT_CACHE_SIZE)
def make_record_statement(shape: QueryShape, source: TextSource) -> Select[*tuple[Any, ...]]:
    """Returns the statement that reads the record whose sourcedId is bound as `path_sourcedId`.

    It gives one row: the state (4), and the JSON text or NULL.
    """
    state = _make_state_cte()
    table = shape.view.record.table
    if source is TextSource.LIVE:
        record = select(make_record_json(shape).label("body"))
        record = record.select_from(table).where(
            get_key_column(shape) == RECORD, make_collection_condition(shape, Driver.FILTER)
        )
    else:
        record = select_rendered_text(shape.view, RECORD)
        if shape.path_filter is not everything:
            # Rendered records do not have the columns that the path filter needs.
            is_selected = shape.path_filter(shape.view.rights, shape.view.record.wording)
            selected = select_ids(shape, get_key_column(shape) == RECORD, is_selected)
            record = record.where(exists(selected))
    body = record.subquery("record").c.body
    return select(*state.c, body).select_from(state.outerjoin(body.table, true()))
