"""Filter shapes: what of a filter decides the SQL, apart from its values.

Building the SQL of a collection takes longer than finding few records in it. Plans that differ only in the values of
their filters therefore share one statement.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from oneroster_filter import Operator, Or, clauses
from oneroster_filter.sqlalchemy import FilterValue
from sqlalchemy.sql import visitors

from roster_service.db.prepared_statements import DIALECT
from roster_service.serving.departures import DepartureFilter, compile_departure_filter
from roster_service.serving.plan import Plan
from roster_service.serving.statements import compile_clause, make_filter_condition

# The caller's filter, as a condition on records, and on departures: None where it matches none of these.
FilterConditions = tuple[sa.ColumnElement[bool], DepartureFilter | None]


def make_filter_conditions(plan: Plan) -> FilterConditions:
    """Returns the filter of a plan, with its values in the conditions."""
    return make_filter_condition(plan), compile_departure_filter(plan)


def has_invented_name(plan: Plan) -> bool:
    """Whether the filter or the sort names a key below `metadata`. The caller invents these names, so they must fill no
    cache."""
    known, sort = plan.shape.view.filter_types, plan.shape.sort
    named = () if plan.filter is None else clauses(plan.filter)
    return (sort is not None and "." in sort) or any(clause.field not in known for clause in named)


@dataclass(frozen=True)
class FilterShape:
    """The part of a filter that decides its SQL, without the values.

    `comparisons`: (field, operator) of each clause, none without a filter. `is_or`: whether OR joins the clauses.
    `conditions`: the SQL, with `filter_0`, `filter_1` and so on as bound values; it is equal for all filters of one
    shape.
    """

    comparisons: tuple[tuple[str, Operator], ...]
    is_or: bool
    conditions: FilterConditions = field(compare=False)


def bind_filter(plan: Plan) -> tuple[FilterShape, Mapping[str, Any]]:
    """Separates the filter of a plan into its shape and its values, by name, as the driver takes them."""
    values: dict[str, Any] = {}

    def replace_value(element: Any, **_: Any) -> sa.BindParameter[Any] | None:
        if not isinstance(element, FilterValue):
            return None
        name = f"filter_{len(values)}"
        to_driver = element.type.dialect_impl(DIALECT).bind_processor(DIALECT)
        values[name] = element.value if to_driver is None else to_driver(element.value)
        return sa.bindparam(name, type_=element.type)

    condition = visitors.replacement_traverse(make_filter_condition(plan), {}, replace_value)
    departed = compile_departure_filter(plan, _make_binder(plan))
    named = () if plan.filter is None else clauses(plan.filter)
    comparisons = tuple((clause.field, clause.operator) for clause in named)
    return FilterShape(comparisons, isinstance(plan.filter, Or), (condition, departed)), values


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
