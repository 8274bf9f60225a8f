"""The statements of orderings: one makes an ordering in one pass, one selects the ids of a page.

The database stores each ordering in ascending order, with `sourcedId` as the last key. The descending order is exactly
its reverse, including absent values and ties, so both directions share one ordering.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, aggregate_order_by
from sqlalchemy.sql.dml import ReturningInsert, ReturningUpdate
from sqlalchemy.types import BigInteger, Boolean, Integer

from roster_service.db.prepared_statements import PreparedStatement, compile_statement
from roster_service.db.tables import WHOLE, CText, CTexts, ordering_chunks, orderings, visible_feeds
from roster_service.roster.visibility import VENDOR, find_visible_set
from roster_service.serving import filter_shapes, statements
from roster_service.serving.departures import join_departures
from roster_service.serving.filter_shapes import FilterConditions, FilterShape
from roster_service.serving.plan import Plan, QueryShape
from roster_service.serving.request import make_ordering_shape
from roster_service.serving.statements import STATEMENT_CACHE_SIZE, Driver

# Ids in one chunk. A page of the usual size reads one or two chunks.
CHUNK_SIZE = 1000

QUERY = sa.bindparam("query", type_=orderings.c.query.type)
_CLAIMED_IDS = sa.cast(sa.bindparam("ordering_ids"), ARRAY(BigInteger))
_CLAIMED_FEEDS = sa.cast(sa.bindparam("ordering_feeds"), ARRAY(Integer))
BY_FEED = sa.cast(sa.bindparam("by_feed"), Boolean)
# The casts are needed because PostgreSQL cannot infer the type of a sum of two parameters.
LIMIT = sa.cast(sa.bindparam("page_limit"), BigInteger)
OFFSET = sa.cast(sa.bindparam("page_offset"), BigInteger)


def select_parts() -> sa.Select[int, str, int]:
    """Returns the SELECT of (feed, visible set, present revision) for each ordering of which the caller's collection
    consists: one for each feed that it sees if `by_feed` is bound as true, else one for WHOLE."""
    seen = visible_feeds.alias()
    return sa.select(seen.c.feed_id, find_visible_set(seen.c).label("visible_set"), seen.c.revision).where(
        seen.c.vendor_id == VENDOR, (seen.c.feed_id != WHOLE) == BY_FEED
    )


def join_orderings(parts: sa.FromClause) -> sa.Join:
    """Returns the outer join of parts (feed, visible set, revision) with the ordering that each has of the query that
    is bound as `query`. The columns of an ordering that is not stored are NULL."""
    is_its_ordering = sa.and_(
        orderings.c.query == QUERY,
        orderings.c.feed_id == parts.c.feed_id,
        orderings.c.visible_set == parts.c.visible_set,
        orderings.c.revision == parts.c.revision,
    )
    return parts.outerjoin(orderings, is_its_ordering)


@dataclass(frozen=True)
class OrderingQuery:
    """The statement that stores the orderings of a plan: the prepared one of all plans that differ only in their
    values, or one for this plan alone. `values`: bound values beside those of the request."""

    statement: sa.Select[*tuple[Any, ...]] | PreparedStatement
    values: Mapping[str, Any]


def make_ordering_query(plan: Plan, *, by_feed: bool, sees_districts: bool) -> OrderingQuery:
    """Returns the query that stores the ids of the plan's orderings in chunks, in one pass, and their number and size.

    `by_feed`: whether there is an ordering for each feed; else there is one of all records, of the feed WHOLE.
    `sees_districts`: whether the caller sees whole districts.

    The ids of the orderings are bound as `ordering_ids`, and their feeds as `ordering_feeds`. The statement gives a row
    for each: `id`, `bytes` (of the chunks), and `is_present`: whether its revision is still that of the feed, for this
    caller; NULL where the caller does not see the feed any more.
    """
    shape, driver = make_ordering_shape(plan), statements.choose_driver(plan, sees_districts=sees_districts)
    if filter_shapes.has_invented_name(plan):
        positions = select_positions(shape, driver, filter_shapes.make_filter_conditions(plan), by_feed=by_feed)
        return OrderingQuery(_make_statement(positions), {})
    filter_shape, values = filter_shapes.bind_filter(plan)
    return OrderingQuery(_prepare_statement(shape, driver, filter_shape, by_feed), values)


# The statement itself is freed: 500 of them were 30 MB of each worker.
@functools.lru_cache(STATEMENT_CACHE_SIZE)
def _prepare_statement(
    shape: QueryShape, driver: Driver, filter_shape: FilterShape, by_feed: bool
) -> PreparedStatement:
    positions = select_positions(shape, driver, filter_shape.conditions, by_feed=by_feed)
    return compile_statement(_make_statement(positions))


def select_positions(
    shape: QueryShape, driver: Driver, filtered: FilterConditions, *, by_feed: bool
) -> sa.Select[str, int, int]:
    """Returns the SELECT of (id, position, feed) for every record and departure of orderings; positions count from 0.

    `shape`: of `make_ordering_shape`. `by_feed`: whether there is an ordering for each feed that is bound in
    `ordering_feeds`; else there is one of all records, of the feed WHOLE.
    """
    conditions = [statements.make_collection_condition(shape, driver)]
    if by_feed:
        conditions.append(shape.view.record.table.c.feed_id == sa.any_(_CLAIMED_FEEDS))
    members = join_departures(shape, conditions, filtered, [key.element for key in statements.make_sort_keys(shape)])
    # Sorted apart: for the order of an index, PostgreSQL would fetch the rows of a large table one by one.
    found = members.cte("members").prefix_with("MATERIALIZED")
    *keys, feed_id = found.c
    feed: sa.ColumnElement[int] = feed_id if by_feed else sa.literal_column(str(WHOLE), Integer)
    window: dict[str, Any] = {"partition_by": feed_id} if by_feed else {}
    position = sa.func.row_number().over(order_by=keys, **window) - 1
    return sa.select(keys[-1], position, feed.label("feed_id"))


def _make_statement(positions: sa.Select[str, int, int]) -> sa.Select[*tuple[Any, ...]]:
    found = positions.subquery("found")
    identifier, at, of_feed = found.c
    # Not `div`, which counts in numerics.
    number = sa.cast(at.op("/")(CHUNK_SIZE), Integer)
    claimed = sa.func.unnest(_CLAIMED_IDS, _CLAIMED_FEEDS).table_valued("id", "feed_id").render_derived(name="claimed")
    chunks = (
        sa.select(
            sa.cast(claimed.c.id, BigInteger),
            number,
            sa.func.array_agg(aggregate_order_by(identifier, at.asc()), type_=CTexts),
        )
        .select_from(found.join(claimed, claimed.c.feed_id == of_feed))
        .group_by(claimed.c.id, number)
    )
    stored = (
        sa.insert(ordering_chunks)
        .from_select(["ordering_id", "number", "ids"], chunks)
        .returning(
            ordering_chunks.c.ordering_id,
            sa.func.cardinality(ordering_chunks.c.ids).label("length"),
            sa.func.pg_column_size(ordering_chunks.c.ids).label("bytes"),
        )
        .cte("stored")
    )
    sizes = (
        sa.select(
            claimed.c.id,
            sa.func.coalesce(sa.func.sum(stored.c.length), 0).label("total"),
            sa.func.coalesce(sa.func.sum(stored.c.bytes), 0).label("bytes"),
        )
        .select_from(claimed.outerjoin(stored, stored.c.ordering_id == claimed.c.id))
        .group_by(claimed.c.id)
        .subquery("sizes")
    )
    made = (
        sa.update(orderings)
        .values(total=sizes.c.total, bytes=sizes.c.bytes)
        .where(orderings.c.id == sizes.c.id)
        .returning(orderings.c.id, orderings.c.feed_id, orderings.c.revision, orderings.c.bytes)
        .cte("made")
    )
    seen = visible_feeds.alias()
    is_seen = (seen.c.vendor_id == VENDOR) & (seen.c.feed_id == made.c.feed_id)
    is_present = (seen.c.revision == made.c.revision).label("is_present")
    return sa.select(made.c.id, made.c.bytes, is_present).select_from(made.outerjoin(seen, is_seen))


def select_changed(change: ReturningInsert[Any] | ReturningUpdate[Any]) -> sa.Select[Any]:
    """Returns the SELECT of the rows that the change returns. (SQLAlchemy would take the bound values of an INSERT or
    UPDATE for columns, if they have the names of columns.)"""
    changed = change.cte("changed")
    return sa.select(*changed.c)


def select_page_ids(parts: sa.FromClause, whole: sa.FromClause, *, descending: bool) -> sa.ColumnElement[Any]:
    """Returns the array of the ids of the page that is bound as `page_limit` and `page_offset`, in ascending order.

    `parts`: rows with `id`, `start` (number of records before the ordering) and `total` of each ordering. `whole`: one
    row with the `total` of all of them, NULL where one is missing. `descending`: whether the page counts from the end.
    """
    # 0 where an ordering is missing: LEAST ignores NULL, so the numbers of chunks would follow from any offset.
    total = sa.func.coalesce(whole.c.total, 0, type_=BigInteger)
    first = sa.func.least(OFFSET, total)
    last = first + sa.func.least(LIMIT, total - first)
    begin, end = (total - last, total - first) if descending else (first, last)
    # The bounds of the page inside an ordering.
    part_begin = sa.func.greatest(begin - parts.c.start, 0)
    part_end = sa.func.least(end - parts.c.start, parts.c.total)
    # OFFSET 0 makes PostgreSQL compute the numbers first. Row-level security lets it look up chunks by a number, and
    # not by an expression, which might show something of the rows: then it would read all chunks of the ordering.
    bounds = (
        sa.select(
            parts.c.id,
            parts.c.start,
            sa.cast(part_begin, BigInteger).label("begin"),
            sa.cast(part_end, BigInteger).label("end"),
            sa.cast(sa.func.div(part_begin, CHUNK_SIZE), Integer).label("first_chunk"),
            sa.cast(sa.func.div(part_end - 1, CHUNK_SIZE), Integer).label("last_chunk"),
        )
        .select_from(parts.join(whole, part_begin < part_end))
        .offset(0)
        .subquery("bounds")
    )
    before = ordering_chunks.c.number * CHUNK_SIZE
    shown = ordering_chunks.c.ids[
        sa.cast(sa.func.greatest(bounds.c.begin - before, 0) + 1, Integer) : sa.cast(bounds.c.end - before, Integer)
    ]
    is_inside = sa.and_(
        ordering_chunks.c.ordering_id == bounds.c.id,
        ordering_chunks.c.number.between(bounds.c.first_chunk, bounds.c.last_chunk),
    )
    ids = (
        sa.select(sa.func.unnest(shown, type_=CText))
        .select_from(bounds.join(ordering_chunks, is_inside))
        .order_by(bounds.c.start, ordering_chunks.c.number)
    )
    return sa.func.array(ids.scalar_subquery(), type_=CTexts)
