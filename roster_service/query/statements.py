"""A plan, turned into statements: one that fetches the page as JSON texts, one that counts.

The caller's filter and sort stand above the conditions of visibility, never beside them: they are joined by AND
around the whole filter, so that an OR inside it cannot reach past them.
"""

from __future__ import annotations

import functools
from enum import Enum
from typing import Any

from oneroster_filter import Through, sqlalchemy_where
from sqlalchemy import ColumnElement, Select, Table, and_, bindparam, case, func, or_, select, true
from sqlalchemy.types import BigInteger

from roster_service.db import json_text, tables
from roster_service.db.visibility import Sight, every_org_is_granted, row_is_visible
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
    return _page(plan.outline) if plan.filter is None else _make_page(plan.outline, _filter(plan))


def count_statement(plan: Plan) -> Select[int]:
    """How many records the caller would see on all pages together."""
    return _count(plan.outline) if plan.filter is None else _make_count(plan.outline, _filter(plan))


@functools.lru_cache(KEPT)
def _page(outline: Outline) -> Select[str]:
    return _make_page(outline, true())


@functools.lru_cache(KEPT)
def _count(outline: Outline) -> Select[int]:
    return _make_count(outline, true())


def _make_page(outline: Outline, wanted: ColumnElement[bool]) -> Select[str]:
    ids = (
        matching(outline, admits(outline), wanted)
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
    return true() if plan.filter is None else _filter(plan)


def _make_count(outline: Outline, wanted: ColumnElement[bool]) -> Select[int]:
    return select(func.count()).select_from(outline.view.record.table).where(admits(outline), wanted)


def _key(outline: Outline) -> ColumnElement[str]:
    return outline.view.record.table.c.sourced_id


def record_json(outline: Outline) -> ColumnElement[str]:
    """The JSON text of a record, with the fields that are wanted."""
    return _record_json(outline.view, outline.fields)


@functools.lru_cache(KEPT)
def _record_json(view: View, fields: tuple[str, ...]) -> ColumnElement[str]:
    return json_text.object_json((name, view.fields[name].json(view.sight)) for name in fields)


def admits(outline: Outline) -> ColumnElement[bool]:
    """What the caller may see, and what the path means: below whatever the caller filters."""
    return _admits(outline.view.record.table, outline.view.sight, outline.selection)


class Reach(Enum):
    """How much of the roster is open to a caller, as far as it shapes a statement; what is open follows from the grants
    in any case."""

    # Single schools.
    SCHOOLS = "schools"
    # Whole districts, and so most of what a filter leaves.
    DISTRICTS = "districts"
    # Every user and all demographics, by what the database keeps of the grants.
    EVERYONE = "everyone"


def admits_of(outline: Outline, reach: Reach, *, filtered: bool) -> ColumnElement[bool]:
    """The same as `admits`, in the form that costs least for a caller of this reach. `filtered`: whether the caller
    filters as well."""
    if (
        reach is Reach.EVERYONE
        and outline.view.record.table in _PEOPLE
        and (filtered or outline.selection is everything)
    ):
        return _one_by_one(_admits_everyone(outline.view.record.table, outline.view.sight, outline.selection))
    if reach is not Reach.SCHOOLS and filtered:
        return _one_by_one(admits(outline))
    return admits(outline)


def _one_by_one(condition: ColumnElement[bool]) -> ColumnElement[bool]:
    """The condition, asked of each row that a filter has left: for whom nearly all rows are visible, a list of all of
    them would cost more than the search."""
    return case((condition, 1), else_=0) != 0


@functools.lru_cache(KEPT)
def _admits(table: Table, sight: Sight, selection: Selection) -> ColumnElement[bool]:
    return and_(row_is_visible(table, table, sight), selection(sight))


@functools.lru_cache(KEPT)
def _admits_everyone(table: Table, sight: Sight, selection: Selection) -> ColumnElement[bool]:
    """As `_admits`, for a caller to whom everyone is said to be open: where every org is indeed granted, no row is
    asked."""
    return and_(or_(every_org_is_granted(), row_is_visible(table, table, sight)), selection(sight))


def _filter(plan: Plan) -> ColumnElement[bool]:
    if plan.filter is None:
        raise TypeError("the plan has no filter")
    find = functools.partial(find_source, plan.outline.view)
    # A function of the migrations, which row-level security need not come before.
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


def find_source(view: View, path: str) -> Source:
    """The SQL behind a full path that the plan's check admitted."""
    name, _, rest = path.partition(".")
    return view.fields[name].source(rest, view.sight)
