"""Runs a plan's statements on a connection and returns the page as JSON texts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import Connection, Engine, Select

from roster_service.access.callers import Caller
from roster_service.access.known_callers import KnownCaller
from roster_service.db.message import Call, fetch_last
from roster_service.db.prepared import fetch_rows
from roster_service.db.visibility import read_opening, repeat_opening
from roster_service.query.plan import Outline, Plan
from roster_service.query.statements import count_statement, page_statement, single_statement
from roster_service.query.walk_statements import first_page_statement, kept_page_statement, listed_page_statement
from roster_service.query.walks import Known, Walk, Walks, find_places, make_walk


@dataclass(frozen=True)
class Page:
    """The records of a page, each a JSON text, and how many there are on all pages."""

    texts: tuple[str, ...]
    total: int


def run_collection(connection: Connection, plan: Plan, caller: Caller, base_url: str, walks: Walks) -> Page:
    """The page of a collection. `base_url`: the root that refs are built on."""
    return fetch_page(connection, make_walk(plan, _bind(plan, caller, base_url), caller.state, caller.opening), walks)


def fetch_page(connection: Connection, walk: Walk, walks: Walks) -> Page:
    """The page that a walk's plan asks for.

    Who asks for a first page, or only counts, is answered in one pass, and nothing is written: many go no further.
    Who asks for more walks: the walk is kept, and this page and all others are read from it.
    """
    known = walks.find(connection, walk)
    if known is None and walk.plan.limit == 0:
        return _count(connection, walk, walks)
    if known is None and walk.plan.offset == 0:
        return _meet(connection, walk, walks)
    page = None if known is None else _read_kept(connection, walk, known)
    return page or _keep(connection, walk, walks) or _live(connection, walk)


def _count(connection: Connection, walk: Walk, walks: Walks) -> Page:
    total = connection.execute(count_statement(walk.plan), walk.values).scalar_one()
    walks.share(walk, total)
    return Page((), total)


def _meet(connection: Connection, walk: Walk, walks: Walks) -> Page:
    """The first page of a walk that nobody asked for yet."""
    values = {**walk.values, "page_limit": walk.plan.limit}
    rows = connection.execute(first_page_statement(walk.plan), values).all()
    total = rows[0][1] if rows else 0
    if total > walk.plan.limit:
        walks.share(walk, total)
    else:
        # There is no next page to ask for. Other workers need not hear of it.
        walks.remember(walk, Known(total, is_kept=False))
    return Page(tuple(text for text, _ in rows), total)


def _read_kept(connection: Connection, walk: Walk, known: Known) -> Page | None:
    """The page, out of a walk that is kept; None where it is not, or has been evicted."""
    begin, end = find_places(walk.plan, known.total)
    if begin == end:
        return Page((), known.total)
    if not known.is_kept:
        return None
    values = {**walk.values, "walk": walk.key, "page_begin": begin, "page_end": end}
    texts = _fetch_texts(connection, kept_page_statement, walk.plan.outline, values)
    return Page(texts, known.total) if len(texts) == end - begin else None


def _keep(connection: Connection, walk: Walk, walks: Walks) -> Page | None:
    """The page, out of a walk that is kept from now on; None where it cannot be."""
    # The second lock is told the same again, not worked out anew.
    window = walks.keep(walk, partial(repeat_opening, opening=read_opening(connection)))
    if window is None:
        return None
    # What was kept just now is newer than what this connection sees, so the ids are handed over.
    values = {**walk.values, "page_ids": list(window.ids)}
    texts = _fetch_texts(connection, listed_page_statement, walk.plan.outline, values) if window.ids else ()
    return Page(texts, window.total) if len(texts) == len(window.ids) else None


def _live(connection: Connection, walk: Walk) -> Page:
    """The page without any walk: right in every case, and slow."""
    plan = walk.plan
    values = {**walk.values, "page_limit": plan.limit, "page_offset": plan.offset}
    texts = tuple(connection.scalars(page_statement(plan), values)) if plan.limit else ()
    return Page(texts, connection.execute(count_statement(plan), walk.values).scalar_one())


def run_single(connection: Connection, plan: Plan, caller: Caller, base_url: str) -> str | None:
    """The JSON text of one record, or None where there is none that the caller may see."""
    texts = _fetch_texts(connection, single_statement, plan.outline, _bind(plan, caller, base_url))
    return texts[0] if texts else None


def stands(engine: Engine, known: KnownCaller) -> bool:
    """Whether the database says of the caller and the roster what is known, in one message."""
    return fetch_last(engine, known.stands) == [(True,)]


def recall_page(engine: Engine, plan: Plan, known: KnownCaller, base_url: str, walks: Walks) -> Page | None:
    """The page of a walk that this worker knows, in one message; None where it does not, or where something that is
    known is otherwise now: then `run_collection` has it."""
    caller = known.caller
    walk = make_walk(plan, _bind(plan, caller, base_url), caller.state, caller.opening)
    found = walks.recall(walk)
    if found is None or _has_own_words(plan.outline):
        return None
    begin, end = find_places(plan, found.total)
    if begin == end:
        return Page((), found.total) if stands(engine, known) else None
    if not found.is_kept:
        return None
    values = {**walk.values, "walk": walk.key, "page_begin": begin, "page_end": end}
    rows = fetch_last(engine, known.readmit, Call(kept_page_statement(plan.outline), values)) or ()
    return Page(tuple(row[0] for row in rows), found.total) if len(rows) == end - begin else None


def recall_single(engine: Engine, plan: Plan, known: KnownCaller, base_url: str) -> str | None:
    """The JSON text of one record, in one message; None where there is none that the caller may see, or where
    something that is known of the caller is otherwise now: then `run_single` says which."""
    call = Call(single_statement(plan.outline), _bind(plan, known.caller, base_url))
    rows = fetch_last(engine, known.readmit, call)
    return str(rows[0][0]) if rows else None


def _has_own_words(outline: Outline) -> bool:
    """Whether a caller's own words stand in the statements: a sort on `metadata` names what the caller likes."""
    return outline.sort is not None and "." in outline.sort


def _fetch_texts(
    connection: Connection, make: Callable[[Outline], Select[str]], outline: Outline, values: Mapping[str, Any]
) -> tuple[str, ...]:
    """The texts of a statement that is kept by its outline, prepared unless a caller's own words stand in it."""
    statement = make(outline)
    if _has_own_words(outline):
        return tuple(connection.scalars(statement, values))
    return tuple(row[0] for row in fetch_rows(connection, statement, values))


def _bind(plan: Plan, caller: Caller, base_url: str) -> dict[str, Any]:
    return {
        "caller_districts": list(caller.districts),
        "caller_schools": list(caller.schools),
        # The text goes inside JSON strings, and a Host header can hold what JSON must escape.
        "base_url": _escape(base_url),
        # No text in PostgreSQL has a NUL, so no record has such an id.
        **{f"path_{name}": None if "\x00" in value else value for name, value in plan.path_ids},
    }


def _escape(text: str) -> str:
    return json.dumps(text)[1:-1]
