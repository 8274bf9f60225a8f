"""First-page queries: the ids of a page without a stored ordering, and the count of its collection, in one pass.

Where few records are left, PostgreSQL takes longer to plan such a statement than to run it. Plans that differ only in
their values therefore share one statement, which each connection plans once.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from oneroster_filter import FilterValue, Operator, Or, clauses
from sqlalchemy import CTE, BindParameter, ColumnElement, bindparam, cast, func, select
from sqlalchemy.dialects.postgresql import array
from sqlalchemy.sql import visitors

from roster_service.cache.ordering_statements import LIMIT, OFFSET
from roster_service.db.prepared_statements import DIALECT
from roster_service.db.tables import CTexts
from roster_service.query.plan import Plan, QueryShape
from roster_service.query.statements import (
    STATEMENT_CACHE_SIZE,
    Driver,
    choose_collection_condition,
    compile_filter,
    find_driver,
    has_dotted_sort,
    make_collection_condition,
    make_filter_condition,
    make_sort_keys,
)


@dataclass(frozen=True)
class FirstPageQuery:
    """The CTE that finds the page bound as `page_limit` and `page_offset`.

    `found`: one row with `ids` (array of the page's ids, in order) and `total` (number of records of the collection).
    `values`: bound values beside those of the request. `is_shared`: whether all plans that differ only in their values
    get the same `found` object, so that each connection can plan its statement once.
    """

    found: CTE
    values: Mapping[str, Any]
    is_shared: bool


def make_first_page_query(plan: Plan, *, by_feed: bool, sees_districts: bool) -> FirstPageQuery:
    """Returns the query that finds a page of a plan. `by_feed`: whether the records of a feed are together, as in
    `AuthorizedRequest`; `sees_districts`: whether the caller sees whole districts.

    A query that neither path nor filter makes selective is not shared: PostgreSQL plans it with its values, because
    the number of records that are left depends on them.
    """
    shape, driver = dataclasses.replace(plan.shape, fields=()), find_driver(plan)
    if driver is Driver.VISIBILITY or has_dotted_sort(shape) or _names_metadata_key(plan):
        admitted = choose_collection_condition(plan, sees_districts=sees_districts)
        conditions = (admitted, make_filter_condition(plan))
        found = _select_page(shape, *conditions, by_feed=by_feed) if plan.limit else _select_count(shape, *conditions)
        return FirstPageQuery(found, {}, is_shared=False)
    if plan.filter is None:
        return FirstPageQuery(_select_unfiltered_page(shape, driver), {}, is_shared=True)
    filter_shape, values = bind_filter(plan)
    return FirstPageQuery(_select_filtered_page(shape, driver, filter_shape), values, is_shared=True)


def _names_metadata_key(plan: Plan) -> bool:
    """Whether the filter names a key of `metadata`. The caller invents these names, so they must fill no cache."""
    known = plan.shape.view.filter_types
    return plan.filter is not None and any(clause.field not in known for clause in clauses(plan.filter))


@dataclass(frozen=True)
class FilterShape:
    """The part of a filter that decides its SQL, without the values.

    `comparisons`: (field, operator) of each clause. `is_or`: whether OR joins the clauses. `condition`: the SQL, with
    `filter_0`, `filter_1` and so on as bound values; it is equal for all filters of one shape.
    """

    comparisons: tuple[tuple[str, Operator], ...]
    is_or: bool
    condition: ColumnElement[bool] = field(compare=False)


def bind_filter(plan: Plan) -> tuple[FilterShape, Mapping[str, Any]]:
    """Separates the filter of a plan into its shape and its values, by name, as the driver takes them.

    Raises TypeError where the plan has no filter.
    """
    if plan.filter is None:
        raise TypeError("the plan has no filter")
    values: dict[str, Any] = {}

    def replace_value(element: Any, **_: Any) -> BindParameter[Any] | None:
        if not isinstance(element, FilterValue):
            return None
        name = f"filter_{len(values)}"
        to_driver = element.type.dialect_impl(DIALECT).bind_processor(DIALECT)
        values[name] = element.value if to_driver is None else to_driver(element.value)
        return bindparam(name, type_=element.type)

    condition = visitors.replacement_traverse(compile_filter(plan), {}, replace_value)
    comparisons = tuple((clause.field, clause.operator) for clause in clauses(plan.filter))
    return FilterShape(comparisons, isinstance(plan.filter, Or), condition), values


@functools.lru_cache(STATEMENT_CACHE_SIZE)
def _select_unfiltered_page(shape: QueryShape, driver: Driver) -> CTE:
    return _select_page(shape, make_collection_condition(shape, driver), by_feed=False)


@functools.lru_cache(STATEMENT_CACHE_SIZE)
def _select_filtered_page(shape: QueryShape, driver: Driver, filter_shape: FilterShape) -> CTE:
    return _select_page(shape, make_collection_condition(shape, driver), filter_shape.condition, by_feed=False)


def _select_page(shape: QueryShape, *conditions: ColumnElement[bool], by_feed: bool) -> CTE:
    sorts = [_strip_direction(key) for key in make_sort_keys(shape)]
    if by_feed:
        sorts.insert(0, shape.view.record.table.c.feed_id)
    named = [key.label(f"key_{number}") for number, key in enumerate(sorts)]
    matching = select(*named).where(*conditions).cte("matching")
    keys = list(matching.c)
    order = [key.desc() if shape.descending else key.asc() for key in keys]
    ids = select(keys[-1]).order_by(*order).limit(LIMIT).offset(OFFSET)
    total = select(func.count()).select_from(matching).scalar_subquery()
    return select(func.array(ids.scalar_subquery(), type_=CTexts).label("ids"), total.label("total")).cte("found")


def _select_count(shape: QueryShape, *conditions: ColumnElement[bool]) -> CTE:
    """Returns the CTE for a request with limit 0, which only counts: `ids` is empty."""
    none: ColumnElement[Any] = cast(array([]), CTexts)
    counted = select(none.label("ids"), func.count().label("total")).select_from(shape.view.record.table)
    return counted.where(*conditions).cte("found")


def _strip_direction(key: Any) -> ColumnElement[Any]:
    """Returns a sort key without its direction."""
    element: ColumnElement[Any] = key.element
    return element
