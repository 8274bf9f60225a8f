"""The statements of orderings: one makes an ordering in one pass, one selects the ids of a page.

The database stores each ordering in ascending order, with `sourcedId` as the last key. The descending order is exactly
its reverse, including absent values and ties, so both directions share one ordering.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, FromClause, Select, bindparam, cast, func, insert, select, true
from sqlalchemy.dialects.postgresql import aggregate_order_by
from sqlalchemy.types import BigInteger, Integer

from roster_service.db.tables import CText, CTexts, ordering_chunks, roster_state
from roster_service.query.plan import Plan
from roster_service.query.request import make_ordering_shape
from roster_service.query.statements import (
    choose_collection_condition,
    make_filter_condition,
    make_sort_keys,
    select_ids,
)

# Ids in one chunk. A page of the usual size reads one or two chunks.
CHUNK_SIZE = 1000

ORDERING_ID = bindparam("ordering_id", type_=BigInteger)
# The casts are needed because PostgreSQL cannot infer the type of a sum of two parameters.
LIMIT = cast(bindparam("page_limit"), BigInteger)
OFFSET = cast(bindparam("page_offset"), BigInteger)


def select_positions(plan: Plan, *, sees_districts: bool) -> Select[str, int]:
    """Returns the SELECT of (id, position) for every record of the plan's ordering; positions count from 0.

    `sees_districts`: whether the caller sees whole districts.
    """
    shape = make_ordering_shape(plan)
    position = func.row_number().over(order_by=make_sort_keys(shape)) - 1
    return select_ids(
        shape, choose_collection_condition(plan, sees_districts=sees_districts), make_filter_condition(plan)
    ).add_columns(position)


def make_ordering_statement(plan: Plan, *, sees_districts: bool) -> Select[*tuple[Any, ...]]:
    """Returns the statement that stores the ids of the plan's ordering in chunks, in one pass.

    The id of the ordering is bound as `ordering_id`. The statement gives one row: (number of ids, bytes of the chunks,
    revision of the roster). `sees_districts`: whether the caller sees whole districts.
    """
    found = select_positions(plan, sees_districts=sees_districts).subquery("found")
    identifier, position = found.c
    number = cast(func.div(position, CHUNK_SIZE), Integer)
    chunks = select(
        ORDERING_ID, number, func.array_agg(aggregate_order_by(identifier, position.asc()), type_=CTexts)
    ).group_by(number)
    stored = (
        insert(ordering_chunks)
        .from_select(["ordering_id", "number", "ids"], chunks)
        .returning(
            func.cardinality(ordering_chunks.c.ids).label("length"),
            func.pg_column_size(ordering_chunks.c.ids).label("bytes"),
        )
        .cte("stored")
    )
    sums = select(func.coalesce(func.sum(stored.c.length), 0), func.coalesce(func.sum(stored.c.bytes), 0))
    stored_sums = sums.subquery("sums")
    total, size = stored_sums.c
    return select(
        cast(total, BigInteger).label("total"), cast(size, BigInteger).label("bytes"), roster_state.c.revision
    ).select_from(stored_sums.join(roster_state, true()))


def select_page_ids(ordering: FromClause, *, descending: bool) -> ColumnElement[Any]:
    """Returns the array of the ids of the page that is bound as `page_limit` and `page_offset`, in ascending order.

    `ordering`: one row with `id` and `total`, or no row. `descending`: whether the page counts from the end.
    """
    total = ordering.c.total
    first = func.least(OFFSET, total)
    last = first + func.least(LIMIT, total - first)
    begin, end = (total - last, total - first) if descending else (first, last)
    before = ordering_chunks.c.number * CHUNK_SIZE
    part = ordering_chunks.c.ids[cast(func.greatest(begin - before, 0) + 1, Integer) : cast(end - before, Integer)]
    inside = ordering_chunks.c.number.between(
        cast(func.div(begin, CHUNK_SIZE), Integer), cast(func.div(end - 1, CHUNK_SIZE), Integer)
    )
    ids = (
        select(func.unnest(part, type_=CText))
        .select_from(ordering.join(ordering_chunks, (ordering_chunks.c.ordering_id == ordering.c.id) & inside))
        .where(begin < end)
        .order_by(ordering_chunks.c.number)
    )
    return func.array(ids.scalar_subquery(), type_=CTexts)
