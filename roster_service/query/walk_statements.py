"""The statements of walks: one that makes a walk in one pass, and those that read a page from it.

A walk is kept in ascending order, `sourcedId` last: descending is the same backwards, absent values and ties included.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

from sqlalchemy import (
    ColumnElement,
    LargeBinary,
    Select,
    bindparam,
    cast,
    func,
    insert,
    literal_column,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import aggregate_order_by
from sqlalchemy.types import BigInteger, Integer

from roster_service.db.tables import CText, CTexts, roster_state
from roster_service.db.walk_tables import walk_chunks
from roster_service.query.documents import batches_statement, reads_documents, shelved_batches_statement
from roster_service.query.plan import Outline, Plan
from roster_service.query.statements import (
    KEPT,
    Driver,
    Reach,
    admits,
    admits_of,
    matching,
    order_of,
    records_of,
    wanted_by,
)

# How many ids a chunk has. A page of the usual size reads one or two.
CHUNK = 1000


def _bound_walk() -> ColumnElement[Any]:
    return bindparam("walk", type_=LargeBinary)


def _count(name: str) -> ColumnElement[Any]:
    return bindparam(name, type_=BigInteger)


def forward(outline: Outline) -> Outline:
    """What of an outline decides its walk: neither the direction nor the fields."""
    return dataclasses.replace(outline, descending=False, fields=())


def places(plan: Plan, reach: Reach) -> Select[str, int]:
    """(id, place) of every record of the plan's walk; places count from 0. `reach`: the caller's."""
    outline = forward(plan.outline)
    place = func.row_number().over(order_by=order_of(outline)) - 1
    return matching(outline, admits_of(plan, reach), wanted_by(plan)).add_columns(place)


def keeping_statement(plan: Plan, reach: Reach) -> Select[*tuple[Any, ...]]:
    """Keeps the ids of the walk bound as `walk`, in one pass; gives their number, their bytes, and which roster this
    was: the columns of roster_state. `reach`: the caller's."""
    found = places(plan, reach).subquery("found")
    identifier, place = found.c
    number = cast(func.div(place, CHUNK), Integer)
    chunks = select(
        _bound_walk(), number, func.array_agg(aggregate_order_by(identifier, place.asc()), type_=CTexts)
    ).group_by(number)
    kept = (
        insert(walk_chunks)
        .from_select(["walk", "number", "ids"], chunks)
        .returning(
            func.cardinality(walk_chunks.c.ids).label("length"), func.pg_column_size(walk_chunks.c.ids).label("bytes")
        )
        .cte("kept")
    )
    sums = select(func.coalesce(func.sum(kept.c.length), 0), func.coalesce(func.sum(kept.c.bytes), 0))
    kept_sums = sums.subquery("sums")
    total, size = kept_sums.c
    return select(
        cast(total, BigInteger).label("total"),
        cast(size, BigInteger).label("bytes"),
        roster_state.c.revision,
        roster_state.c.as_of,
        roster_state.c.deletions_since,
    ).select_from(kept_sums.join(roster_state, true()))


def texts_of(outline: Outline, ids: ColumnElement[Any], *, backwards: bool) -> Select[str, int]:
    """(JSON texts, joined by commas; how many they are) in each row, for the records whose ids are in the list `ids`,
    in order. `backwards`: the order is that of the list from its end."""
    if reads_documents(outline):
        return batches_statement(outline, ids, backwards=backwards)
    return records_of(outline, ids).where(admits(outline, Driver.FILTER)).add_columns(literal_column("1"))


@functools.lru_cache(KEPT)
def kept_page_statement(outline: Outline) -> Select[str, int]:
    """The texts, as `texts_of` has them, of the records at the places from `page_begin` to before `page_end` of the
    walk bound as `walk`."""
    return texts_of(outline, func.array(window_statement().scalar_subquery()), backwards=outline.descending)


@functools.lru_cache(KEPT)
def shelved_page_statement(outline: Outline) -> Select[str, int]:
    """Those of them that are documents; for outlines that read these."""
    return shelved_batches_statement(
        outline, func.array(window_statement().scalar_subquery()), backwards=outline.descending
    )


@functools.lru_cache(KEPT)
def listed_page_statement(outline: Outline) -> Select[str, int]:
    """The texts, as `texts_of` has them, of the records whose ids are in the list bound as `page_ids`, in the order of
    their walk."""
    return texts_of(outline, bindparam("page_ids", type_=CTexts), backwards=outline.descending)


@functools.lru_cache(KEPT)
def shelved_listed_page_statement(outline: Outline) -> Select[str, int]:
    """Those of them that are documents; for outlines that read these."""
    return shelved_batches_statement(outline, bindparam("page_ids", type_=CTexts), backwards=outline.descending)


@functools.cache
def window_statement() -> Select[str]:
    """The ids at the places from `page_begin` to before `page_end` of the walk bound as `walk`, in their order."""
    begin, end = _count("page_begin"), _count("page_end")
    before = walk_chunks.c.number * CHUNK
    part = walk_chunks.c.ids[cast(func.greatest(begin - before, 0) + 1, Integer) : cast(end - before, Integer)]
    inside = walk_chunks.c.number.between(
        cast(func.div(begin, CHUNK), Integer), cast(func.div(end - 1, CHUNK), Integer)
    )
    return (
        select(func.unnest(part, type_=CText))
        .where(walk_chunks.c.walk == _bound_walk(), inside)
        .order_by(walk_chunks.c.number)
    )
