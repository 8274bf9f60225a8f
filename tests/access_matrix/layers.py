"""Taking a layer away, to see that the other one holds by itself.

The first layer is the query filter of a request (roster_service/roster/visibility.py); the second is PostgreSQL's
row-level security for the role that serves requests.
"""

from __future__ import annotations

import dataclasses
import enum
import sys
from collections.abc import Collection, Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service import app
from roster_service.db import tables
from roster_service.db.roles import Addresses, DatabaseRole
from roster_service.db.tables import visible_groups, visible_labels, visible_orgs
from roster_service.roster import visibility
from roster_service.roster.visibility import ContentRights, Opened, Viewer
from roster_service.settings import Settings


class Layers(enum.Enum):
    """Which layers are on."""

    BOTH = "both layers"
    POLICIES_ALONE = "row-level security alone"
    QUERY_FILTER_ALONE = "the query filter alone"
    NONE = "no layer"

    @property
    def has_query_filter(self) -> bool:
        """Whether the plan's conditions are on."""
        return self in (Layers.BOTH, Layers.QUERY_FILTER_ALONE)

    @property
    def has_policies(self) -> bool:
        """Whether row-level security is on."""
        return self in (Layers.BOTH, Layers.POLICIES_ALONE)


def has_row_level_security(engine: sa.Engine) -> bool:
    """Whether the database has row-level security on its roster tables."""
    query = sa.text("SELECT bool_and(relrowsecurity) FROM pg_class WHERE relname = ANY (:names) AND relkind = 'r'")
    with engine.connect() as connection:
        return bool(connection.scalar(query, {"names": [table.name for table in tables.ROSTER_TABLES]}))


def take_away(patch: pytest.MonkeyPatch, layers: Layers) -> None:
    """Takes away the layers that are not on, from the next application and the next statement."""
    if not layers.has_query_filter:
        open_query_filter(patch)
    if not layers.has_policies:
        open_row_level_security(patch)


def open_query_filter(patch: pytest.MonkeyPatch) -> None:
    """The rows of visible orgs and labels count whosever they are, and the conditions on records hold. What a path
    means, and which columns a scope shows, stays."""
    every_org = sa.select(tables.orgs.alias().c.sourced_id)

    def is_anyones(org_id: sa.ColumnElement[str], _viewer: Viewer) -> sa.ColumnElement[bool]:
        seen = visible_orgs.alias()
        return visibility.has_row(seen, seen.c.org_id == org_id)

    def has_label(
        label_id: sa.ColumnElement[int], rights: ContentRights, opened: Opened | None = None
    ) -> sa.ColumnElement[bool]:
        seen = visible_labels.alias()
        roles = visibility._is_open(seen, dataclasses.replace(rights, guardians=True), opened)
        return visibility.has_row(seen, seen.c.label_id == label_id, *roles)

    def has_group(group_id: sa.ColumnElement[int], _rights: ContentRights) -> sa.ColumnElement[bool]:
        seen = visible_groups.alias()
        return visibility.has_row(seen, seen.c.group_id == group_id)

    always = {
        "row_is_visible": lambda _table, _row, _rights: sa.true(),
        "org_id_is_visible": is_anyones,
        "org_id_is_granted": is_anyones,
        "org_id_is_shared": is_anyones,
        "group_is_visible": has_group,
        "role_is_visible": lambda _role, _rights: sa.true(),
        "label_is_open": has_label,
        "is_kept": lambda _person_id, _viewer: sa.false(),
        "departure_is_visible": lambda _departure: sa.true(),
        "find_visible_rows": lambda _table, _rights: sa.true(),
        "departure_is_shown": lambda _departure: sa.true(),
        "select_whole_districts": lambda: every_org,
    }
    for name, opened in always.items():
        original = getattr(visibility, name)
        for module in list(_iter_modules()):
            if getattr(module, name, None) is original:
                patch.setattr(module, name, opened)
    forget_statements()


def open_row_level_security(patch: pytest.MonkeyPatch) -> None:
    """Requests are served as the owner of the tables, whom row-level security does not hold."""
    prepare = app.prepare_database

    def prepare_for_owner(settings: Settings, database_url: str, roles: Collection[DatabaseRole]) -> Addresses:
        found = prepare(settings, database_url, roles)
        return dataclasses.replace(found, urls={**found.urls, DatabaseRole.SERVING: database_url})

    patch.setattr(app, "prepare_database", prepare_for_owner)


def forget_statements() -> None:
    """Forgets every statement that was kept, so that the next one is built anew."""
    for module in _iter_modules():
        for value in vars(module).values():
            if hasattr(type(value), "cache_clear"):
                value.cache_clear()


def _iter_modules() -> Iterator[Any]:
    return (module for name, module in list(sys.modules.items()) if name.startswith("roster_service"))
