"""First-page queries: the ids of a page without a stored ordering, and the count of its collection, in one pass.

Where few records are left, PostgreSQL takes longer to plan such a statement than to run it. Plans that differ only in
their values therefore share one statement, which each connection plans once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import array

from roster_service.db.tables import CTexts
from roster_service.serving import filter_shapes, statements
from roster_service.serving.departures import join_departures
from roster_service.serving.filter_shapes import FilterConditions, FilterShape
from roster_service.serving.ordering_statements import LIMIT, OFFSET
from roster_service.serving.plan import Plan, QueryShape
from roster_service.serving.statements import Driver


@dataclass(frozen=True)
class SharedSearch:
    """What decides how the page of a plan is found, apart from the values of its filter. Plans of which it is equal
    share a statement, so that each connection can plan it once. `only_whole`: as for `make_first_page_query`."""

    shape: QueryShape
    driver: Driver
    filter_shape: FilterShape
    only_whole: bool

    def find(self) -> sa.CTE:
        """Returns the CTE that finds the page."""
        admitted = statements.make_collection_condition(self.shape, self.driver)
        conditions = self.filter_shape.conditions
        return _select_page(self.shape, admitted, conditions, by_feed=False, only_whole=self.only_whole)


@dataclass(frozen=True)
class FirstPageQuery:
    """The search for the page bound as `page_limit` and `page_offset`: one that other plans share, or for this plan
    alone the CTE of one row with `ids` (array of the page's ids, in order) and `total` (number of records of the
    collection). `values`: bound values beside those of the request."""

    search: SharedSearch | sa.CTE
    values: Mapping[str, Any]

    def find(self) -> sa.CTE:
        """Returns the CTE."""
        return self.search.find() if isinstance(self.search, SharedSearch) else self.search


def make_first_page_query(
    plan: Plan, *, by_feed: bool, sees_districts: bool, only_whole: bool = False
) -> FirstPageQuery:
    """Returns the query that finds a page of a plan. `by_feed`: whether the records of a feed are together, as in
    `AuthorizedRequest`; `sees_districts`: whether the caller sees whole districts; `only_whole`: of a first page, which
    is found if it has the whole collection; else the query ends with the first record beyond the page, has no ids, and
    a total of one more than the limit.

    A query that neither path nor filter makes selective, and that does not end so, is not shared: PostgreSQL plans it
    with its values, because the number of records that are left depends on them.
    """
    shape = dataclasses.replace(plan.shape, fields=())
    driver = statements.choose_driver(plan, sees_districts=sees_districts)
    if not (only_whole or statements.is_narrow(plan)) or filter_shapes.has_invented_name(plan):
        admitted = statements.make_collection_condition(shape, driver)
        filtered = filter_shapes.make_filter_conditions(plan)
        found = (
            _select_page(shape, admitted, filtered, by_feed=by_feed, only_whole=only_whole)
            if plan.limit
            else _select_count(shape, admitted, filtered)
        )
        return FirstPageQuery(found, {})
    filter_shape, values = filter_shapes.bind_filter(plan)
    return FirstPageQuery(SharedSearch(shape, driver, filter_shape, only_whole), values)


def _select_page(
    shape: QueryShape,
    admitted: sa.ColumnElement[bool],
    filtered: FilterConditions,
    *,
    by_feed: bool,
    only_whole: bool,
) -> sa.CTE:
    sorts = [_strip_direction(key) for key in statements.make_sort_keys(shape)]
    members = join_departures(shape, (admitted,), filtered, sorts)
    matching = (members.limit(LIMIT + 1) if only_whole else members).cte("matching")
    *keys, feed_id = matching.c
    if by_feed:
        keys.insert(0, feed_id)
    order = [key.desc() if shape.descending else key.asc() for key in keys]
    ids = sa.select(keys[-1]).order_by(*order).limit(LIMIT).offset(OFFSET)
    total = sa.select(sa.func.count()).select_from(matching).scalar_subquery()
    if only_whole:
        ids = ids.where(total <= LIMIT)
    return sa.select(sa.func.array(ids.scalar_subquery(), type_=CTexts).label("ids"), total.label("total")).cte("found")


def _select_count(shape: QueryShape, admitted: sa.ColumnElement[bool], filtered: FilterConditions) -> sa.CTE:
    """Returns the CTE for a request with limit 0, which only counts: `ids` is empty."""
    none: sa.ColumnElement[Any] = sa.cast(array([]), CTexts)
    matching = join_departures(shape, (admitted,), filtered, [statements.get_key_column(shape)]).subquery("matching")
    return sa.select(none.label("ids"), sa.func.count().label("total")).select_from(matching).cte("found")


def _strip_direction(key: Any) -> sa.ColumnElement[Any]:
    """Returns a sort key without its direction."""
    element: sa.ColumnElement[Any] = key.element
    return element
