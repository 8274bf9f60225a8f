"""Runs a plan's statements on a connection and returns the page as JSON texts."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from roster_service.access.callers import Caller
from roster_service.query.plan import Plan
from roster_service.query.statements import count_statement, page_statement, single_statement


@dataclass(frozen=True)
class Page:
    """The records of a page, each a JSON text, and how many there are on all pages."""

    texts: tuple[str, ...]
    total: int


def run_collection(connection: Connection, plan: Plan, caller: Caller, base_url: str) -> Page:
    """The page of a collection. `base_url`: the root that refs are built on."""
    return fetch_page(connection, plan, _bind(plan, caller, base_url))


def fetch_page(connection: Connection, plan: Plan, values: dict[str, Any]) -> Page:
    """The page of a plan whose statements are bound to `values`."""
    texts: tuple[str, ...] = ()
    if plan.limit > 0:
        page = {"page_limit": plan.limit, "page_offset": plan.offset}
        texts = tuple(connection.scalars(page_statement(plan), values | page))
    # A page that is not full ends the collection, so its end is the count.
    if 0 < len(texts) < plan.limit:
        return Page(texts, plan.offset + len(texts))
    return Page(texts, connection.execute(count_statement(plan), values).scalar_one())


def run_single(connection: Connection, plan: Plan, caller: Caller, base_url: str) -> str | None:
    """The JSON text of one record, or None where there is none that the caller may see."""
    return connection.execute(single_statement(plan.outline), _bind(plan, caller, base_url)).scalar_one_or_none()


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
