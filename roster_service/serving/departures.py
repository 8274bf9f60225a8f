"""The departures of a list: what it shows of records that left what the caller may see.

A departure is a tombstone with nothing of its record but the id. A filter on another field matches none, whatever its
operator, and a sort by another field finds no value.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from oneroster_filter import Operator, clauses, fold_tree
from oneroster_filter.sqlalchemy import sqlalchemy_where
from oneroster_filter.typing import TypedClause

from roster_service.db import tables
from roster_service.db.frozen_sql import freeze
from roster_service.db.tables import LABELLED, CText, Stamp
from roster_service.roster import json_text
from roster_service.roster.visibility import ContentRights, departure_is_shown, has_row
from roster_service.serving.path_filters import ListFilter, PathFilter, everything
from roster_service.serving.plan import Plan, QueryShape
from roster_service.serving.statements import STATEMENT_CACHE_SIZE

_STATUS = sa.cast(sa.literal_column("'tobedeleted'"), CText)
# The values of a departure, by field, among the rows of `select_departures`.
_VALUES: Mapping[str, sa.ColumnElement[Any]] = {
    "sourcedId": sa.column("sourced_id", CText),
    "status": _STATUS,
    "dateLastModified": sa.column("departed_at", Stamp),
}


@dataclass(frozen=True)
class DepartureFilter:
    """A filter as a condition on the rows of `select_departures`. `is_monotone`: whether it holds of the latest
    departure of a record exactly if it holds of any, so that each can be asked before they are grouped: then no policy
    looks at the older ones."""

    condition: sa.ColumnElement[bool]
    is_monotone: bool


EVERY_DEPARTURE = DepartureFilter(sa.true(), is_monotone=True)
_LOWER_BOUNDS = (Operator.GREATER, Operator.GREATER_OR_EQUAL)


def has_departures(shape: QueryShape) -> bool:
    """Whether the list of a shape shows departures."""
    return isinstance(shape.path_filter, ListFilter) and shape.view.record.table in LABELLED


def select_departures(shape: QueryShape, *conditions: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """Returns the SELECT of the departures of a list that the caller sees: `sourced_id`, `feed_id`, and `departed_at`,
    the latest one of a record. `conditions`: on the table of departures. Raises TypeError for a shape
    without departures."""
    left = tables.departures
    return (
        sa.select(
            left.c.sourced_id,
            left.c.feed_id,
            sa.func.max(left.c.departed_at).label("departed_at"),
        )
        .where(_is_seen_in_list(shape.path_filter, shape.view.record.table, shape.view.rights.of_rows), *conditions)
        .group_by(left.c.sourced_id, left.c.feed_id)
    )


@functools.lru_cache(STATEMENT_CACHE_SIZE)
def _is_seen_in_list(listed: PathFilter, table: sa.Table, rights: ContentRights) -> sa.ColumnElement[bool]:
    if not isinstance(listed, ListFilter):
        raise TypeError("the list shows no departures")
    left, record = tables.departures, table.alias("present_record")
    is_there = has_row(record, record.c.sourced_id == left.c.sourced_id, listed.opens(record, rights))
    is_of_list = sa.and_(left.c.type == table.name, listed.opens(left, rights), departure_is_shown(left), ~is_there)
    return freeze(is_of_list, left)


def make_departure_json(shape: QueryShape, departure: sa.FromClause) -> sa.ColumnElement[str]:
    """Returns the expression of the JSON text of a departure, with those fields of the shape that every record has."""
    own = {
        "sourcedId": json_text.text_json(departure.c.sourced_id),
        "status": json_text.text_json(_STATUS),
        "dateLastModified": json_text.instant_json(departure.c.departed_at),
    }
    fields = shape.view.fields
    return json_text.object_json(
        (name, own.get(name, fields[name].blank_json())) for name in shape.fields if fields[name].required
    )


def compile_departure_filter(
    plan: Plan, bind: Callable[[int, sa.ColumnElement[bool]], sa.ColumnElement[bool]] = lambda _number, clause: clause
) -> DepartureFilter | None:
    """Returns the filter of a plan as a condition on departures; None where it matches none of them, whatever their
    values, or the list shows none. `bind`: called for the number and the condition of each clause."""
    if not has_departures(plan.shape):
        return None
    if plan.filter is None:
        return EVERY_DEPARTURE
    numbers = itertools.count()

    def compile_clause(clause: TypedClause) -> sa.ColumnElement[bool]:
        number = next(numbers)
        if clause.field not in _VALUES:
            return sa.false()
        return bind(number, sqlalchemy_where(clause, _VALUES, contains=sa.func.contains_folded))

    if not fold_tree(plan.filter, lambda clause: clause.field in _VALUES, all, any):
        return None
    condition = fold_tree(plan.filter, compile_clause, lambda parts: sa.and_(*parts), lambda parts: sa.or_(*parts))
    # The other values are the same for all departures of a record.
    stamps = [clause.operator for clause in clauses(plan.filter) if clause.field == "dateLastModified"]
    return DepartureFilter(condition, all(operator in _LOWER_BOUNDS for operator in stamps))


def join_departures(
    shape: QueryShape,
    conditions: Sequence[sa.ColumnElement[bool]],
    filtered: tuple[sa.ColumnElement[bool], DepartureFilter | None],
    keys: Sequence[sa.ColumnElement[Any]],
) -> sa.Select[Any] | sa.CompoundSelect[Any]:
    """Returns the SELECT of the records of a list together with its departures.

    Its columns are the values of `keys`, the sort keys of a record of which the last one is the id, and `feed_id`.
    `conditions`: of the records; `filtered`: the filter for records, and for departures, None where it matches none of
    these."""
    on_records, on_departures = filtered
    table = shape.view.record.table
    named = [key.label(f"key_{number}") for number, key in enumerate(keys)]
    records = sa.select(*named, table.c.feed_id).where(*conditions, on_records)
    if on_departures is None:
        return records
    condition, is_monotone = on_departures.condition, on_departures.is_monotone
    before, after = (condition, sa.true()) if is_monotone else (sa.true(), condition)
    departed = select_departures(shape, before).subquery("departed")
    found = [_VALUES.get(str(shape.sort)), _VALUES["sourcedId"]][-len(keys) :]
    shown = [
        (sa.cast(sa.null(), key.type) if value is None else value).label(key.name)
        for key, value in zip(named, found, strict=True)
    ]
    return records.union_all(sa.select(*shown, departed.c.feed_id).where(after))


def may_show_departure_of_visible(shape: QueryShape) -> bool:
    """Whether the list may show a departure of a record that the caller sees elsewhere: `/students`, of a teacher."""
    listed = shape.path_filter
    return isinstance(listed, ListFilter) and listed.opens is not everything.opens
