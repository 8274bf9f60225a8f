"""A page whose ordering is not kept: its ids and the count of its collection, found in one pass.

Planning such a statement takes PostgreSQL longer than running it where few records are left. So plans that differ in
values alone share one statement, which each connection plans once.
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
    """What finds a page: the row (list of its ids in their order, number of all records of the collection) for the page
    bound as `page_limit` and `page_offset`.

    `values`: what is bound beside the values of the request. `is_kept`: all plans that differ in values alone have
    this very object, so that PostgreSQL may plan its statement once.
    """

    found: CTE
    values: Mapping[str, Any]
    is_kept: bool


def make_first_page_query(plan: Plan, *, sees_districts: bool) -> FirstPageQuery:
    """How a page of a plan is found. `sees_districts`: whether the caller sees whole districts.

    What does not say which records are few is planned with its values: how many it leaves depends on them.
    """
    shape, driver = dataclasses.replace(plan.shape, fields=()), find_driver(plan)
    if driver is Driver.VISIBILITY or has_dotted_sort(shape) or _names_own_field(plan):
        admitted = choose_collection_condition(plan, sees_districts=sees_districts)
        find = _find if plan.limit else _count
        return FirstPageQuery(find(shape, admitted, make_filter_condition(plan)), {}, is_kept=False)
    if plan.filter is None:
        return FirstPageQuery(_select_unfiltered_page(shape, driver), {}, is_kept=True)
    filter_shape, values = bind_filter(plan)
    return FirstPageQuery(_select_filtered_page(shape, driver, filter_shape), values, is_kept=True)


def _names_own_field(plan: Plan) -> bool:
    """Whether the filter names a key of `metadata`: the caller's own word, which nothing keeps."""
    known = plan.shape.view.filter_types
    return plan.filter is not None and any(clause.field not in known for clause in clauses(plan.filter))


@dataclass(frozen=True)
class FilterShape:
    """What the SQL of a filter depends on beside its values. `condition`: that SQL, with `filter_0`, `filter_1` and so
    on for the values; filters of one shape have the same."""

    comparisons: tuple[tuple[str, Operator], ...]
    is_or: bool
    condition: ColumnElement[bool] = field(compare=False)


def bind_filter(plan: Plan) -> tuple[FilterShape, Mapping[str, Any]]:
    """The filter of a plan apart from its values, and these by name, as the driver takes them."""
    if plan.filter is None:
        raise TypeError("the plan has no filter")
    values: dict[str, Any] = {}

    def take_value(element: Any, **_: Any) -> BindParameter[Any] | None:
        if not isinstance(element, FilterValue):
            return None
        name = f"filter_{len(values)}"
        to_driver = element.type.dialect_impl(DIALECT).bind_processor(DIALECT)
        values[name] = element.value if to_driver is None else to_driver(element.value)
        return bindparam(name, type_=element.type)

    condition = visitors.replacement_traverse(compile_filter(plan), {}, take_value)
    comparisons = tuple((clause.field, clause.operator) for clause in clauses(plan.filter))
    return FilterShape(comparisons, isinstance(plan.filter, Or), condition), values


@functools.lru_cache(STATEMENT_CACHE_SIZE)
def _select_unfiltered_page(shape: QueryShape, driver: Driver) -> CTE:
    return _find(shape, make_collection_condition(shape, driver))


@functools.lru_cache(STATEMENT_CACHE_SIZE)
def _select_filtered_page(shape: QueryShape, driver: Driver, filter_shape: FilterShape) -> CTE:
    return _find(shape, make_collection_condition(shape, driver), filter_shape.condition)


def _find(shape: QueryShape, *conditions: ColumnElement[bool]) -> CTE:
    named = [_strip_direction(key).label(f"key_{number}") for number, key in enumerate(make_sort_keys(shape))]
    matching = select(*named).where(*conditions).cte("matching")
    keys = list(matching.c)
    order = [key.desc() if shape.descending else key.asc() for key in keys]
    ids = select(keys[-1]).order_by(*order).limit(LIMIT).offset(OFFSET)
    total = select(func.count()).select_from(matching).scalar_subquery()
    return select(func.array(ids.scalar_subquery(), type_=CTexts).label("ids"), total.label("total")).cte("found")


def _count(shape: QueryShape, *conditions: ColumnElement[bool]) -> CTE:
    """Without a page, for who only counts."""
    none: ColumnElement[Any] = cast(array([]), CTexts)
    counted = select(none.label("ids"), func.count().label("total")).select_from(shape.view.record.table)
    return counted.where(*conditions).cte("found")


def _strip_direction(key: Any) -> ColumnElement[Any]:
    """A sort key without its direction."""
    element: ColumnElement[Any] = key.element
    return element
