"""A plan, turned into statements: one that fetches the page as JSON texts, one that counts.

The caller's filter and sort stand above the conditions of visibility, never beside them: they are joined by AND
around the whole filter, so that an OR inside it cannot reach past them.
"""

from __future__ import annotations

import functools
from enum import Enum
from typing import Any

from oneroster_filter import (
    FieldType,
    Kind,
    Operator,
    Through,
    TypedClause,
    TypedExpr,
    fold_tree,
    sqlalchemy_where,
)
from sqlalchemy import ColumnElement, Select, Table, and_, bindparam, func, or_, select, true
from sqlalchemy.types import BigInteger

from roster_service.db import json_text, tables
from roster_service.db.visibility import Sight, every_org_is_granted, of_each_row, row_is_visible
from roster_service.query.plan import Outline, Plan, View
from roster_service.query.selections import Selection, everything, path_id
from roster_service.schemas.kinds import Source

RECORD = path_id("sourcedId")


# Building a statement costs more than running it: those without a filter, nearly all, are built once.
KEPT = 512
# The tables whose rows are open through the roles of a user.
_PEOPLE = (tables.users, tables.demographics)


def page_statement(plan: Plan) -> Select[str]:
    """One JSON text per record of the page, in order; `page_limit` and `page_offset` are bound.

    The page's ids are found first, so that skipped records cost no JSON.
    """
    if plan.filter is None:
        return _page(plan.outline, find_driver(plan))
    return _make_page(plan.outline, find_driver(plan), filter_condition(plan))


def count_statement(plan: Plan) -> Select[int]:
    """How many records the caller would see on all pages together."""
    if plan.filter is None:
        return _count(plan.outline, find_driver(plan))
    return _make_count(plan.outline, find_driver(plan), filter_condition(plan))


@functools.lru_cache(KEPT)
def _page(outline: Outline, driver: Driver) -> Select[str]:
    return _make_page(outline, driver, true())


@functools.lru_cache(KEPT)
def _count(outline: Outline, driver: Driver) -> Select[int]:
    return _make_count(outline, driver, true())


def _make_page(outline: Outline, driver: Driver, wanted: ColumnElement[bool]) -> Select[str]:
    ids = (
        matching(outline, admits(outline, driver), wanted)
        .order_by(*order_of(outline))
        .limit(bindparam("page_limit", type_=BigInteger))
        .offset(bindparam("page_offset", type_=BigInteger))
        # A query of its own, though it reads the table that the outer one reads.
        .correlate(None)
    )
    return records_of(outline, func.array(ids.scalar_subquery()))


def records_of(outline: Outline, chosen: ColumnElement[Any]) -> Select[str]:
    """One JSON text per record whose id is in the list `chosen`, in order."""
    return select(record_json(outline)).where(_key(outline) == func.any(chosen)).order_by(*order_of(outline))


def matching(outline: Outline, admitted: ColumnElement[bool], wanted: ColumnElement[bool]) -> Select[str]:
    """The ids of all that the caller may see and the path means, as `admitted` says it, and that are `wanted`."""
    return select(_key(outline)).where(admitted, wanted)


def wanted_by(plan: Plan) -> ColumnElement[bool]:
    """The filter of a plan as a condition; true where it has none."""
    return true() if plan.filter is None else filter_condition(plan)


def _make_count(outline: Outline, driver: Driver, wanted: ColumnElement[bool]) -> Select[int]:
    return select(func.count()).select_from(outline.view.record.table).where(admits(outline, driver), wanted)


def _key(outline: Outline) -> ColumnElement[str]:
    return outline.view.record.table.c.sourced_id


def record_json(outline: Outline) -> ColumnElement[str]:
    """The JSON text of a record, with the fields that are wanted."""
    return _record_json(outline.view, outline.fields)


@functools.lru_cache(KEPT)
def _record_json(view: View, fields: tuple[str, ...]) -> ColumnElement[str]:
    return json_text.object_json((name, view.fields[name].json(view.sight)) for name in fields)


class Driver(Enum):
    """Where PostgreSQL begins to look for the records of a collection.

    The conditions are the same for all drivers. They differ in form, and the form decides the plan: a condition that is
    asked of each row (`of_each_row`) never comes first.
    """

    # What the caller may see: nothing else says which records are few.
    VISIBILITY = "visibility"
    # The parent that the path names: the enrollments of one class.
    PATH = "path"
    # The filter: it compares an indexed column for equality, or the caller may see nearly all that it leaves.
    FILTER = "filter"


class Reach(Enum):
    """How much of the roster is open to a caller, as far as it shapes a statement; what is open follows from the grants
    in any case."""

    # Single schools.
    SCHOOLS = "schools"
    # Whole districts, and so most of what a filter leaves.
    DISTRICTS = "districts"
    # Every user and all demographics, by what the database keeps of the grants.
    EVERYONE = "everyone"


def find_driver(plan: Plan) -> Driver:
    """Where a plan's statements begin, as far as the plan alone says."""
    if plan.path_ids:
        return Driver.PATH
    is_selective = plan.filter is not None and _is_selective(plan.outline.view, plan.filter)
    return Driver.FILTER if is_selective else Driver.VISIBILITY


def is_narrow(plan: Plan) -> bool:
    """Whether the path or the filter leaves few records."""
    return find_driver(plan) is not Driver.VISIBILITY


def _is_selective(view: View, typed: TypedExpr) -> bool:
    """Whether a filter leaves few records: it compares a text that an index begins with for equality."""
    indexed = _leading_columns(view.record.table)

    def is_equality(clause: TypedClause) -> bool:
        if clause.operator is not Operator.EQUAL or clause.type != FieldType(Kind.TEXT):
            return False
        return find_source(view, clause.field) in indexed

    return fold_tree(typed, is_equality, any, all)


@functools.cache
def _leading_columns(table: Table) -> frozenset[Any]:
    """The columns that an index of the table begins with."""
    indexes = (tuple(index.columns) for index in table.indexes)
    return frozenset(columns[0] for columns in (tuple(table.primary_key), *indexes))


def admits(outline: Outline, driver: Driver) -> ColumnElement[bool]:
    """What the caller may see, and what the path means: below whatever the caller filters."""
    return _admits(outline.view.record.table, outline.view.sight, outline.selection, driver)


def admits_of(plan: Plan, reach: Reach) -> ColumnElement[bool]:
    """The same, in the form that costs least for a plan and a caller of this reach."""
    return admits_for(plan.outline, find_driver(plan), reach, is_filtered=plan.filter is not None)


def admits_for(outline: Outline, driver: Driver, reach: Reach, *, is_filtered: bool) -> ColumnElement[bool]:
    """The same, of all plans that have so much in common."""
    if driver is not Driver.VISIBILITY or reach is Reach.SCHOOLS:
        return admits(outline, driver)
    table, sight, selection = outline.view.record.table, outline.view.sight, outline.selection
    if reach is Reach.EVERYONE and table in _PEOPLE and (is_filtered or selection is everything):
        return of_each_row(_admits_everyone(table, sight, selection))
    # Of whom nearly all rows are visible, a list of all of them would cost more than the search.
    return admits(outline, Driver.FILTER if is_filtered else driver)


@functools.lru_cache(KEPT)
def _admits(table: Table, sight: Sight, selection: Selection, driver: Driver) -> ColumnElement[bool]:
    visible, selected = row_is_visible(table, table, sight), selection(sight)
    match driver:
        case Driver.VISIBILITY:
            return and_(visible, selected)
        case Driver.PATH:
            return and_(selected, of_each_row(visible))
        case Driver.FILTER:
            return of_each_row(and_(visible, selected))


@functools.lru_cache(KEPT)
def _admits_everyone(table: Table, sight: Sight, selection: Selection) -> ColumnElement[bool]:
    """As `_admits`, for a caller to whom everyone is said to be open: where every org is indeed granted, no row is
    asked."""
    return and_(or_(every_org_is_granted(), row_is_visible(table, table, sight)), selection(sight))


def filter_condition(plan: Plan) -> ColumnElement[bool]:
    """The filter of a plan as a condition, its values bound in it."""
    if plan.filter is None:
        raise TypeError("the plan has no filter")
    find = functools.partial(find_source, plan.outline.view)
    # A function of `db/sql`, which row-level security need not come before.
    return sqlalchemy_where(plan.filter, find, contains=func.contains_folded).self_group()


def order_of(outline: Outline) -> list[ColumnElement[Any]]:
    """What the records are sorted by: last the sourcedId, which no two share."""
    keys: list[ColumnElement[Any]] = [_key(outline)]
    if outline.sort is not None and outline.sort != "sourcedId":
        source = find_source(outline.view, outline.sort)
        if isinstance(source, Through):
            raise TypeError(f"{outline.sort} has several values a record")
        keys.insert(0, source)
    return [key.desc() if outline.descending else key.asc() for key in keys]


def has_own_words(outline: Outline) -> bool:
    """Whether a caller's own words stand in the statements: a sort on `metadata` names what the caller likes."""
    return outline.sort is not None and "." in outline.sort


def find_source(view: View, path: str) -> Source:
    """The SQL behind a full path that the plan's check admitted."""
    name, _, rest = path.partition(".")
    return view.fields[name].source(rest, view.sight)
