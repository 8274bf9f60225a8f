"""Taking a lock away, to see that the other one holds by itself.

The first lock is the conditions in the plan of a request (roster_service/db/visibility.py); the second is PostgreSQL's
row-level security for the role that serves requests.
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from sqlalchemy import Engine, select, text, true

from roster_service import app
from roster_service.db import tables, visibility
from roster_service.db.visibility import Sight
from roster_service.query import documents
from roster_service.schemas.records import Record

# The keys of shelves, by what their views are of.
Keys = Mapping[tuple[type[Record], Sight], str]


class Locks(enum.Enum):
    """Which locks are on."""

    BOTH = "both locks"
    SECOND_ALONE = "the second lock alone"
    FIRST_ALONE = "the first lock alone"
    NONE = "no lock"

    @property
    def first(self) -> bool:
        """Whether the plan's conditions are on."""
        return self in (Locks.BOTH, Locks.FIRST_ALONE)

    @property
    def second(self) -> bool:
        """Whether row-level security is on."""
        return self in (Locks.BOTH, Locks.SECOND_ALONE)


def has_second_lock(engine: Engine) -> bool:
    """Whether the database has row-level security on its roster tables."""
    query = text("SELECT bool_and(relrowsecurity) FROM pg_class WHERE relname = ANY (:names) AND relkind = 'r'")
    with engine.connect() as connection:
        return bool(connection.scalar(query, {"names": [table.name for table in tables.ROSTER_TABLES]}))


def take_away(patch: pytest.MonkeyPatch, locks: Locks, keys: Keys) -> None:
    """Takes away the locks that are not on, from the next application and the next statement.

    Shelves are found by their `keys`, the same as with both locks: what is taken away would be part of another one, and
    no document would be read.
    """
    patch.setattr(documents, "key_of", lambda view: keys[view.record, view.sight])
    if not locks.first:
        _open_first_lock(patch)
    if not locks.second:
        _open_second_lock(patch)


def _open_first_lock(patch: pytest.MonkeyPatch) -> None:
    """Every condition on the caller's grants holds. What a path means, and which columns a scope shows, stays."""
    org = tables.orgs
    always = {
        "row_is_visible": lambda _table, _row, _sight: true(),
        "org_is_shown": lambda _org: true(),
        "role_is_visible": lambda _role, _sight: true(),
        "document_is_visible": lambda _sight: true(),
        "document_is_visible_by_district": lambda _document, _sight: true(),
        "granted_orgs": lambda: select(org.alias().c.sourced_id),
    }
    for name, opened in always.items():
        original = getattr(visibility, name)
        for module in list(_iter_modules()):
            if getattr(module, name, None) is original:
                patch.setattr(module, name, opened)
    forget_statements()


def _open_second_lock(patch: pytest.MonkeyPatch) -> None:
    """Requests are served as the owner of the tables, whom row-level security does not hold."""
    for name in ("make_reading_engine", "make_walking_engine"):
        patch.setattr(app, name, _ignore_role(getattr(app, name)))
    patch.setattr(app, "require_serving_role", lambda _engine, _role: None, raising=False)


def _ignore_role(original: Callable[..., Engine]) -> Callable[..., Engine]:
    return lambda url, **options: original(url, **(options | {"role": None}))


def forget_statements() -> None:
    """Forgets every statement that was kept, so that the next one is built anew."""
    for module in _iter_modules():
        for value in vars(module).values():
            if hasattr(type(value), "cache_clear"):
                value.cache_clear()


def _iter_modules() -> Iterator[Any]:
    return (module for name, module in list(sys.modules.items()) if name.startswith("roster_service"))
