"""Runs a plan's statements on a connection and returns the page as JSON texts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import Connection, Select

from roster_service.access.callers import Caller
from roster_service.db.prepared import fetch_rows
from roster_service.db.visibility import read_opening, repeat_opening
from roster_service.query.documents import BASE, reads_documents, single_statement
from roster_service.query.first_page import find_first_page
from roster_service.query.plan import Outline, Plan
from roster_service.query.statements import count_statement, has_own_words, is_narrow, page_statement
from roster_service.query.walk_statements import (
    kept_page_statement,
    listed_page_statement,
    shelved_listed_page_statement,
)
from roster_service.query.walks import Known, Walk, Walks, find_places, make_walk

# Makes the statement of an outline.
_Maker = Callable[[Outline], Select[*tuple[Any, ...]]]


@dataclass(frozen=True)
class Page:
    """The records of a page as JSON texts, one or several joined by commas in each piece; how many they are, and how
    many there are on all pages.

    Where a ref begins, `BASE` stands for the root that it is built on.
    """

    pieces: Sequence[str]
    records: int
    total: int

    def encode(self, head: str, tail: str, base_url: str) -> bytes:
        """The records, joined by commas, between `head` and `tail`, with refs that are built on `base_url`.

        A page can have many megabytes: each piece is small enough to stay near the processor, and the whole is put
        together once.
        """
        root = _escape(base_url)
        made = [piece.replace(BASE, root).encode() for piece in self.pieces] or [b""]
        made[0] = head.encode() + made[0]
        made[-1] += tail.encode()
        return b",".join(made)


def run_collection(connection: Connection, plan: Plan, caller: Caller, walks: Walks) -> Page:
    """The page of a collection."""
    walk = make_walk(plan, bind(plan, caller), caller.state, caller.opening, everyone=caller.everyone)
    return fetch_page(connection, walk, walks)


def fetch_page(connection: Connection, walk: Walk, walks: Walks) -> Page:
    """The page that a walk's plan asks for.

    Who asks for a first page, or only counts, is answered in one pass, and nothing is written: many go no further.
    Who asks for more walks: the walk is kept, and this page and all others are read from it.
    """
    plan = walk.plan
    # A first page of few records costs less than asking the database whether another worker has counted them.
    is_short = plan.offset == 0 and is_narrow(plan)
    known = walks.recall(walk) if is_short else walks.find(connection, walk)
    if known is None and plan.limit == 0:
        return _count(connection, walk, walks)
    if plan.offset == 0 and (known is None or (is_short and plan.limit > 0 and not known.is_kept)):
        return _meet(connection, walk, walks)
    page = None if known is None else _read_kept(connection, walk, known, walks)
    return page or _keep(connection, walk, walks) or _live(connection, walk)


def _count(connection: Connection, walk: Walk, walks: Walks) -> Page:
    total = connection.execute(count_statement(walk.plan), walk.values).scalar_one()
    walks.share(walk, total)
    return Page((), 0, total)


def _meet(connection: Connection, walk: Walk, walks: Walks) -> Page:
    """The first page of a walk that nobody asked for yet."""
    plan = walk.plan
    first = find_first_page(plan, walk.reach)
    values = {**walk.values, **first.values, "page_limit": plan.limit}
    rows = (
        fetch_rows(connection, first.statement, values)
        if first.is_kept
        else connection.execute(first.statement, values).all()
    )
    found, total = tuple(rows[0])
    if total > plan.limit and not is_narrow(plan):
        walks.share(walk, total)
    else:
        # There is no next page to ask for. Other workers need not hear of it.
        walks.remember(walk, Known(total, is_kept=False))
    # In the order of the walk, which descending pages have from its end.
    ids = found[::-1] if walk.plan.outline.descending else found
    return _read_listed(connection, walk, ids, total)


def _read_kept(connection: Connection, walk: Walk, known: Known, walks: Walks) -> Page | None:
    """The page, out of a walk that is kept; None where it is not, or has been evicted."""
    begin, end = find_places(walk.plan, known.total)
    if begin == end:
        return Page((), 0, known.total)
    if not known.is_kept:
        return None
    walks.note_walking(walk)
    values = {**walk.values, "walk": walk.key, "page_begin": begin, "page_end": end}
    page = join_texts(_fetch_rows(connection, kept_page_statement, walk.plan.outline, values), known.total)
    return page if page.records == end - begin else None


def _keep(connection: Connection, walk: Walk, walks: Walks) -> Page | None:
    """The page, out of a walk that is kept from now on; None where it cannot be."""
    # The second lock is told the same again, not worked out anew.
    window = walks.keep(walk, partial(repeat_opening, opening=read_opening(connection)))
    if window is None:
        return None
    # What was kept just now is newer than what this connection sees, so the ids are handed over.
    page = _read_listed(connection, walk, list(window.ids), window.total)
    return page if page.records == len(window.ids) else None


def _read_listed(connection: Connection, walk: Walk, ids: Sequence[str], total: int) -> Page:
    """The page of the records with these ids.

    Nearly always all of them are documents, and a statement that can also make them of the records takes longer to get
    ready than to run: documents alone are asked for first.
    """
    if not ids:
        return Page((), 0, total)
    outline, values = walk.plan.outline, {**walk.values, "page_ids": ids}
    if reads_documents(outline):
        page = join_texts(_fetch_rows(connection, shelved_listed_page_statement, outline, values), total)
        if page.records == len(ids):
            return page
    return join_texts(_fetch_rows(connection, listed_page_statement, outline, values), total)


def _live(connection: Connection, walk: Walk) -> Page:
    """The page without any walk: right in every case, and slow."""
    plan = walk.plan
    values = {**walk.values, "page_limit": plan.limit, "page_offset": plan.offset}
    texts = connection.scalars(page_statement(plan), values).all() if plan.limit else ()
    return Page(texts, len(texts), connection.execute(count_statement(plan), walk.values).scalar_one())


def join_texts(rows: Sequence[Any], total: int) -> Page:
    """A page of rows that begin with (JSON texts, how many they are)."""
    return Page([row[0] for row in rows], sum([row[1] for row in rows]), total)


def run_single(connection: Connection, plan: Plan, caller: Caller, base_url: str) -> str | None:
    """The JSON text of one record, or None where there is none that the caller may see."""
    rows = _fetch_rows(connection, single_statement, plan.outline, bind(plan, caller))
    return put_root(rows[0][0], base_url) if rows else None


def put_root(text: str, base_url: str) -> str:
    """The text of a record, with refs that are built on `base_url`."""
    return text.replace(BASE, _escape(base_url))


def _fetch_rows(
    connection: Connection,
    make: Callable[[Outline], Select[*tuple[Any, ...]]],
    outline: Outline,
    values: Mapping[str, Any],
) -> Sequence[Any]:
    """The rows of a statement that is kept by its outline, prepared unless a caller's own words stand in it."""
    statement = make(outline)
    if has_own_words(outline):
        return connection.execute(statement, values).all()
    return fetch_rows(connection, statement, values)


def bind(plan: Plan, caller: Caller) -> dict[str, Any]:
    """What the statements of a plan are bound to."""
    return {
        "caller_districts": list(caller.districts),
        "caller_schools": list(caller.schools),
        "base_url": BASE,
        # No text in PostgreSQL has a NUL, so no record has such an id.
        **{f"path_{name}": None if "\x00" in value else value for name, value in plan.path_ids},
    }


def _escape(text: str) -> str:
    """As a part of a JSON string: a Host header can hold what JSON must escape."""
    return json.dumps(text)[1:-1]
