"""First-page queries: the ids of a page without a stored ordering, and the count of its collection, in one pass.

Where few records are left, PostgreSQL takes longer to plan such a statement than to run it. Plans that differ only in
their values therefore share one statement, which each connection plans once.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from oneroster_filter import Operator, Or, clauses
from oneroster_filter.sqlalchemy import FilterValue
from sqlalchemy.dialects.postgresql import array
from sqlalchemy.sql import visitors

from roster_service.db.prepared_statements import DIALECT
from roster_service.db.tables import CTexts
from roster_service.serving.departures import (
    EVERY_DEPARTURE,
    DepartureFilter,
    compile_departure_filter,
    has_departures,
    join_departures,
)
from roster_service.serving.ordering_statements import LIMIT, OFFSET
from roster_service.serving.plan import Plan, QueryShape
from roster_service.serving.statements import (
    STATEMENT_CACHE_SIZE,
    Driver,
    choose_collection_condition,
    compile_clause,
    compile_filter,
    find_driver,
    get_key_column,
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

    found: sa.CTE
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
        filtered = (make_filter_condition(plan), compile_departure_filter(plan))
        found = (
            _select_page(shape, admitted, filtered, by_feed=by_feed)
            if plan.limit
            else _select_count(shape, admitted, filtered)
        )
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
    `filter_0`, `filter_1` and so on as bound values; it is equal for all filters of one shape. `departed`: the
    condition on departures, None where the filter matches none.
    """

    comparisons: tuple[tuple[str, Operator], ...]
    is_or: bool
    condition: sa.ColumnElement[bool] = field(compare=False)
    departed: DepartureFilter | None = field(compare=False)


def bind_filter(plan: Plan) -> tuple[FilterShape, Mapping[str, Any]]:
    """Separates the filter of a plan into its shape and its values, by name, as the driver takes them.

    Raises TypeError where the plan has no filter.
    """
    if plan.filter is None:
        raise TypeError("the plan has no filter")
    values: dict[str, Any] = {}

    def replace_value(element: Any, **_: Any) -> sa.BindParameter[Any] | None:
        if not isinstance(element, FilterValue):
            return None
        name = f"filter_{len(values)}"
        to_driver = element.type.dialect_impl(DIALECT).bind_processor(DIALECT)
        values[name] = element.value if to_driver is None else to_driver(element.value)
        return sa.bindparam(name, type_=element.type)

    condition = visitors.replacement_traverse(compile_filter(plan), {}, replace_value)
    departed = compile_departure_filter(plan, _make_binder(plan))
    comparisons = tuple((clause.field, clause.operator) for clause in clauses(plan.filter))
    return FilterShape(comparisons, isinstance(plan.filter, Or), condition, departed), values


def _make_binder(plan: Plan) -> Callable[[int, sa.ColumnElement[bool]], sa.ColumnElement[bool]]:
    """Returns the function that binds the values of a clause, given its number, under the names that `bind_filter` has
    given to the values of the same clause."""

    @functools.cache
    def list_starts() -> list[int]:
        # Few filters match a departure, so the clauses of the others are not compiled a second time.
        parts = () if plan.filter is None else clauses(plan.filter)
        compiled = (compile_clause(plan.shape.view, part) for part in parts)
        return list(itertools.accumulate(map(_count_values, compiled), initial=0))

    def bind(number: int, clause: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
        names = itertools.count(list_starts()[number])

        def replace_value(element: Any, **_: Any) -> sa.BindParameter[Any] | None:
            is_value = isinstance(element, FilterValue)
            return sa.bindparam(f"filter_{next(names)}", type_=element.type) if is_value else None

        return visitors.replacement_traverse(clause, {}, replace_value)

    return bind


def _count_values(condition: sa.ColumnElement[bool]) -> int:
    return sum(isinstance(element, FilterValue) for element in visitors.iterate(condition))


@functools.lru_cache(STATEMENT_CACHE_SIZE)
def _select_unfiltered_page(shape: QueryShape, driver: Driver) -> sa.CTE:
    filtered = (sa.true(), EVERY_DEPARTURE if has_departures(shape) else None)
    return _select_page(shape, make_collection_condition(shape, driver), filtered, by_feed=False)


@functools.lru_cache(STATEMENT_CACHE_SIZE)
def _select_filtered_page(shape: QueryShape, driver: Driver, filter_shape: FilterShape) -> sa.CTE:
    filtered = (filter_shape.condition, filter_shape.departed)
    return _select_page(shape, make_collection_condition(shape, driver), filtered, by_feed=False)


# The caller's filter, as a condition on records, and on departures.
_Filtered = tuple[sa.ColumnElement[bool], DepartureFilter | None]


def _select_page(shape: QueryShape, admitted: sa.ColumnElement[bool], filtered: _Filtered, *, by_feed: bool) -> sa.CTE:
    sorts = [_strip_direction(key) for key in make_sort_keys(shape)]
    matching = join_departures(shape, (admitted,), filtered, sorts).cte("matching")
    *keys, feed_id = matching.c
    if by_feed:
        keys.insert(0, feed_id)
    order = [key.desc() if shape.descending else key.asc() for key in keys]
    ids = sa.select(keys[-1]).order_by(*order).limit(LIMIT).offset(OFFSET)
    total = sa.select(sa.func.count()).select_from(matching).scalar_subquery()
    return sa.select(sa.func.array(ids.scalar_subquery(), type_=CTexts).label("ids"), total.label("total")).cte("found")


def _select_count(shape: QueryShape, admitted: sa.ColumnElement[bool], filtered: _Filtered) -> sa.CTE:
    """Returns the CTE for a request with limit 0, which only counts: `ids` is empty."""
    none: sa.ColumnElement[Any] = sa.cast(array([]), CTexts)
    matching = join_departures(shape, (admitted,), filtered, [get_key_column(shape)]).subquery("matching")
    return sa.select(none.label("ids"), sa.func.count().label("total")).select_from(matching).cte("found")


def _strip_direction(key: Any) -> sa.ColumnElement[Any]:
    """Returns a sort key without its direction."""
    element: sa.ColumnElement[Any] = key.element
    return element
