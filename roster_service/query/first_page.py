"""The first page of a collection that nobody has asked for yet: its ids and its count, found in one pass.

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
from sqlalchemy import BindParameter, ColumnElement, Select, bindparam, func, select
from sqlalchemy.sql import visitors
from sqlalchemy.types import BigInteger

from roster_service.db.prepared import DIALECT
from roster_service.db.tables import CTexts
from roster_service.query.plan import Outline, Plan
from roster_service.query.statements import (
    KEPT,
    Driver,
    Reach,
    admits_for,
    filter_condition,
    find_driver,
    has_own_words,
    order_of,
    wanted_by,
)


@dataclass(frozen=True)
class FirstPage:
    """A statement that gives one row: the ids of the first `page_limit` records, and the number of all records.

    `values`: what is bound to it beside what is bound to all statements of a plan. `is_kept`: all plans that differ in
    values alone have this very statement, so that PostgreSQL may plan it once.
    """

    statement: Select[list[str], int]
    values: Mapping[str, Any]
    is_kept: bool


def find_first_page(plan: Plan, reach: Reach) -> FirstPage:
    """How the first page of a plan is found. `reach`: the caller's.

    What does not say which records are few is planned with its values: how many it leaves depends on them.
    """
    outline, driver = dataclasses.replace(plan.outline, fields=()), find_driver(plan)
    if driver is Driver.VISIBILITY or has_own_words(outline) or _names_own_field(plan):
        admitted = admits_for(outline, driver, reach, is_filtered=plan.filter is not None)
        return FirstPage(_make_statement(outline, admitted, wanted_by(plan)), {}, is_kept=False)
    if plan.filter is None:
        return FirstPage(_plain_statement(outline, driver, reach), {}, is_kept=True)
    shape, values = bind_filter(plan)
    return FirstPage(_shaped_statement(outline, driver, reach, shape), values, is_kept=True)


def _names_own_field(plan: Plan) -> bool:
    """Whether the filter names a key of `metadata`: the caller's own word, which nothing keeps."""
    known = plan.outline.view.filter_types
    return plan.filter is not None and any(clause.field not in known for clause in clauses(plan.filter))


@dataclass(frozen=True)
class FilterShape:
    """What the SQL of a filter depends on beside its values. `condition`: that SQL, with `filter_0`, `filter_1` and so
    on for the values; filters of one shape have the same."""

    comparisons: tuple[tuple[str, Operator], ...]
    is_either: bool
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

    condition = visitors.replacement_traverse(filter_condition(plan), {}, take_value)
    comparisons = tuple((clause.field, clause.operator) for clause in clauses(plan.filter))
    return FilterShape(comparisons, isinstance(plan.filter, Or), condition), values


@functools.lru_cache(KEPT)
def _plain_statement(outline: Outline, driver: Driver, reach: Reach) -> Select[list[str], int]:
    return _make_statement(outline, admits_for(outline, driver, reach, is_filtered=False))


@functools.lru_cache(KEPT)
def _shaped_statement(outline: Outline, driver: Driver, reach: Reach, shape: FilterShape) -> Select[list[str], int]:
    return _make_statement(outline, admits_for(outline, driver, reach, is_filtered=True), shape.condition)


def _make_statement(outline: Outline, *conditions: ColumnElement[bool]) -> Select[list[str], int]:
    named = [_bare(key).label(f"key_{number}") for number, key in enumerate(order_of(outline))]
    found = select(*named).where(*conditions).cte("found")
    keys = list(found.c)
    order = [key.desc() if outline.descending else key.asc() for key in keys]
    ids = select(keys[-1]).order_by(*order).limit(bindparam("page_limit", type_=BigInteger))
    total = select(func.count()).select_from(found).scalar_subquery()
    return select(func.array(ids.scalar_subquery(), type_=CTexts), total)


def _bare(key: Any) -> ColumnElement[Any]:
    """A sort key without its direction."""
    element: ColumnElement[Any] = key.element
    return element
