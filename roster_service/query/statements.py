"""The parts of statements that follow from a plan: what it means, what it filters, what it sorts by, what it shows.

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
from sqlalchemy import ColumnElement, Select, Table, and_, func, select, true

from roster_service.db import json_text
from roster_service.db.visibility import ContentRights, of_each_row, row_is_visible
from roster_service.query.path_filters import PathFilter, bind_path_id
from roster_service.query.plan import Plan, QueryShape, ResourceView
from roster_service.schemas.kinds import Source

RECORD = bind_path_id("sourcedId")
# Stands in texts for the root of refs, which each request has its own of. JSON writes this character as an escape, so
# no text has it otherwise.
HREF_ROOT = "\x01"

# Building a statement costs more than running it: those without a filter, nearly all, are built once.
STATEMENT_CACHE_SIZE = 512


def select_ids(shape: QueryShape, *conditions: ColumnElement[bool]) -> Select[str]:
    """The ids of the records of an outline's table where the conditions hold."""
    return select(get_key_column(shape)).where(*conditions)


def make_filter_condition(plan: Plan) -> ColumnElement[bool]:
    """The filter of a plan as a condition; true where it has none."""
    return true() if plan.filter is None else compile_filter(plan)


def get_key_column(shape: QueryShape) -> ColumnElement[str]:
    """The sourcedId."""
    return shape.view.record.table.c.sourced_id


def make_record_json(shape: QueryShape) -> ColumnElement[str]:
    """The JSON text of a record, with the fields that are wanted."""
    return _record_json(shape.view, shape.fields)


@functools.lru_cache(STATEMENT_CACHE_SIZE)
def _record_json(view: ResourceView, fields: tuple[str, ...]) -> ColumnElement[str]:
    return json_text.object_json((name, view.fields[name].json(view.rights)) for name in fields)


class Driver(Enum):
    """Where PostgreSQL begins to look for the records of a collection.

    The conditions are the same for all drivers. They differ in form, and the form decides the plan: a condition that is
    asked of each row (`of_each_row`) never comes first.
    """

    # What the caller may see: nothing else says which records are few.
    VISIBILITY = "visibility"
    # The parent that the path names: the enrollments of one class.
    PATH = "path"
    # The filter: it compares an indexed column for equality, or the caller may see nearly all rows.
    FILTER = "filter"


def find_driver(plan: Plan) -> Driver:
    """Where a plan's statements begin, as far as the plan alone says."""
    if plan.path_ids:
        return Driver.PATH
    is_selective = plan.filter is not None and _is_selective(plan.shape.view, plan.filter)
    return Driver.FILTER if is_selective else Driver.VISIBILITY


def is_narrow(plan: Plan) -> bool:
    """Whether the path or the filter leaves few records."""
    return find_driver(plan) is not Driver.VISIBILITY


def _is_selective(view: ResourceView, typed: TypedExpr) -> bool:
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


def make_collection_condition(shape: QueryShape, driver: Driver) -> ColumnElement[bool]:
    """What the caller may see, and what the path means: below whatever the caller filters."""
    return _make_collection_condition(shape.view.record.table, shape.view.rights, shape.path_filter, driver)


def choose_collection_condition(plan: Plan, *, sees_districts: bool) -> ColumnElement[bool]:
    """The same, in the form that costs least for a plan. `sees_districts`: whether the caller sees whole districts."""
    driver = find_driver(plan)
    # Who sees whole districts sees nearly all rows: to ask of each row costs less than a join with all that is visible.
    is_searched = driver is Driver.VISIBILITY and sees_districts
    return make_collection_condition(plan.shape, Driver.FILTER if is_searched else driver)


@functools.lru_cache(STATEMENT_CACHE_SIZE)
def _make_collection_condition(
    table: Table, rights: ContentRights, path_filter: PathFilter, driver: Driver
) -> ColumnElement[bool]:
    visible, selected = row_is_visible(table, table, rights), path_filter(rights)
    match driver:
        case Driver.VISIBILITY:
            return and_(visible, selected)
        case Driver.PATH:
            return and_(selected, of_each_row(visible))
        case Driver.FILTER:
            return of_each_row(and_(visible, selected))


def compile_filter(plan: Plan) -> ColumnElement[bool]:
    """The filter of a plan as a condition, its values bound in it."""
    if plan.filter is None:
        raise TypeError("the plan has no filter")
    find = functools.partial(find_source, plan.shape.view)
    # A function of `db/sql`, which row-level security need not come before.
    return sqlalchemy_where(plan.filter, find, contains=func.contains_folded).self_group()


def make_sort_keys(shape: QueryShape) -> list[ColumnElement[Any]]:
    """What the records are sorted by: last the sourcedId, which no two share."""
    keys: list[ColumnElement[Any]] = [get_key_column(shape)]
    if shape.sort is not None and shape.sort != "sourcedId":
        source = find_source(shape.view, shape.sort)
        if isinstance(source, Through):
            raise TypeError(f"{shape.sort} has several values a record")
        keys.insert(0, source)
    return [key.desc() if shape.descending else key.asc() for key in keys]


def has_dotted_sort(shape: QueryShape) -> bool:
    """Whether a caller's own words stand in the statements: a sort on `metadata` names what the caller likes."""
    return shape.sort is not None and "." in shape.sort


def find_source(view: ResourceView, path: str) -> Source:
    """The SQL behind a full path that the plan's check admitted."""
    name, _, rest = path.partition(".")
    return view.fields[name].source(rest, view.rights)
