"""A plan, turned into statements: one that fetches the page as JSON texts, one that counts.

The caller's filter and sort stand above the conditions of visibility, never beside them: they are joined by AND
around the whole filter, so that an OR inside it cannot reach past them.
"""

from __future__ import annotations

import functools
from typing import Any

from oneroster_filter import Through, sqlalchemy_where
from sqlalchemy import ColumnElement, Select, and_, bindparam, func, select
from sqlalchemy.types import BigInteger

from roster_service.db import json_text
from roster_service.db.visibility import row_is_visible
from roster_service.query.plan import Plan
from roster_service.query.selections import path_id
from roster_service.schemas.kinds import Source

# The collation that migrations make for comparing without case.
NOCASE = "roster_nocase"
RECORD = path_id("sourcedId")


def page_statement(plan: Plan) -> Select[str]:
    """One JSON text per record of the page, in order; `page_limit` and `page_offset` are bound.

    The page's ids are found first, so that skipped records cost no JSON.
    """
    key = plan.view.record.table.c.sourced_id
    ids = (
        select(key)
        .where(_conditions(plan))
        .order_by(*_order(plan))
        .limit(bindparam("page_limit", type_=BigInteger))
        .offset(bindparam("page_offset", type_=BigInteger))
        # A query of its own, though it reads the table that the outer one reads.
        .correlate(None)
    )
    chosen = func.array(ids.scalar_subquery())
    return select(_record_json(plan)).where(key == func.any(chosen)).order_by(*_order(plan))


def count_statement(plan: Plan) -> Select[int]:
    """How many records the caller would see on all pages together."""
    return select(func.count()).select_from(plan.view.record.table).where(_conditions(plan))


def single_statement(plan: Plan) -> Select[str]:
    """The JSON text of the one record whose sourcedId is bound as `path_sourcedId`; no row where there is none."""
    return select(_record_json(plan)).where(plan.view.record.table.c.sourced_id == RECORD, _conditions(plan))


def _record_json(plan: Plan) -> ColumnElement[str]:
    fields, sight = plan.view.fields, plan.view.sight
    return json_text.object_json((name, fields[name].json(sight)) for name in plan.fields)


def _conditions(plan: Plan) -> ColumnElement[bool]:
    table, sight = plan.view.record.table, plan.view.sight
    conditions = [row_is_visible(table, table, sight), plan.selection(sight)]
    if plan.filter is not None:
        conditions.append(sqlalchemy_where(plan.filter, functools.partial(find_source, plan), collation=NOCASE))
    return and_(*conditions)


def _order(plan: Plan) -> list[ColumnElement[Any]]:
    keys: list[ColumnElement[Any]] = [plan.view.record.table.c.sourced_id]
    if plan.sort is not None and plan.sort != "sourcedId":
        source = find_source(plan, plan.sort)
        if isinstance(source, Through):
            raise TypeError(f"{plan.sort} has several values a record")
        keys.insert(0, source)
    return [key.desc() if plan.descending else key.asc() for key in keys]


def find_source(plan: Plan, path: str) -> Source:
    """The SQL behind a full path that the plan's check admitted."""
    name, _, rest = path.partition(".")
    return plan.view.fields[name].source(rest, plan.view.sight)
