"""The statements that read for an admitted caller: each gives the state of the roster, and beside it what was found.

They run in one message after the admission, so one row is always there: with `visible_set`, which is NULL where the
admission was refused, and then nothing else is to be believed.
"""

from __future__ import annotations

import functools
from typing import Any

from sqlalchemy import CTE, ColumnElement, FromClause, LargeBinary, Select, bindparam, case, exists, select, true

from roster_service.cache.ordering_statements import select_page_ids
from roster_service.cache.rendered_records import TextSource, select_rendered_text, select_texts
from roster_service.db.tables import orderings, roster_state
from roster_service.db.visibility import read_visible_set, select_whole_districts
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


def _state() -> CTE:
    state = roster_state.c
    columns = (read_visible_set().label("visible_set"), state.revision, state.as_of, state.deletions_since)
    return select(*columns).cte("state")


STATE_STATEMENT = select(*_state().c)


@functools.lru_cache(STATEMENT_CACHE_SIZE)
def make_ordered_page_statement(shape: QueryShape, source: TextSource) -> Select[*tuple[Any, ...]]:
    """(the state; total, bytes, whether the caller sees whole districts; a JSON text, how many records it has), a row
    for each text of the page, in order: from the ordering bound as `query`.

    `bytes` is 0 where the collection was counted and its order is not kept; total is NULL where nothing is known of
    it, and only then the next column says anything. `shape`: without its sort, of which nothing is in the statement.
    """
    state = _state()
    is_own = (
        (orderings.c.query == bindparam("query", type_=LargeBinary))
        & (orderings.c.visible_set == state.c.visible_set)
        & (orderings.c.revision == state.c.revision)
    )
    found = select(orderings.c.id, orderings.c.total, orderings.c.bytes).select_from(state.join(orderings, is_own))
    ordering = found.cte("ordering")
    ids = select_page_ids(ordering, descending=shape.descending)
    sees_districts = case((ordering.c.id.is_(None), exists(select_whole_districts())))
    head = (*state.c, ordering.c.total, ordering.c.bytes, sees_districts)
    return _put_beside(
        head, state.outerjoin(ordering, true()), select_texts(shape, ids, source, backwards=shape.descending)
    )


def make_found_page_statement(shape: QueryShape, found: CTE, source: TextSource) -> Select[*tuple[Any, ...]]:
    """(the state; total; a JSON text, how many records it has), a row for each text of the page, in order: `found`
    gives the ids and the total. `shape`: as for `make_ordered_page_statement`."""
    state = _state()
    ids = select(found.c.ids).scalar_subquery()
    texts = select_texts(shape, ids, source, backwards=False)
    return _put_beside((*state.c, found.c.total), state.join(found, true()), texts)


# All plans with one outline and one way of finding a page have this very statement.
make_shared_page_statement = functools.lru_cache(STATEMENT_CACHE_SIZE)(make_found_page_statement)


def _put_beside(
    head: tuple[ColumnElement[Any], ...], source: FromClause, texts: Select[str, int, int]
) -> Select[*tuple[Any, ...]]:
    """The head in each row, and the texts one by one; one row without a text where there is none."""
    shown = texts.subquery("shown")
    rows = select(*head, shown.c.body, shown.c.records).select_from(source.outerjoin(shown, true()))
    return rows.order_by(shown.c.number)


@functools.lru_cache(STATEMENT_CACHE_SIZE)
def make_record_statement(shape: QueryShape, source: TextSource) -> Select[*tuple[Any, ...]]:
    """(the state; the JSON text of the record whose sourcedId is bound as `path_sourcedId`, or NULL)."""
    state = _state()
    table = shape.view.record.table
    if source is TextSource.LIVE:
        record = select(make_record_json(shape).label("body"))
        record = record.select_from(table).where(
            get_key_column(shape) == RECORD, make_collection_condition(shape, Driver.FILTER)
        )
    else:
        record = select_rendered_text(shape.view, RECORD)
        if shape.path_filter is not everything:
            # Whether the path means it is a question to the record.
            meant = select_ids(shape, get_key_column(shape) == RECORD, shape.path_filter(shape.view.rights))
            record = record.where(exists(meant))
    body = record.subquery("record").c.body
    return select(*state.c, body).select_from(state.outerjoin(body.table, true()))
