"""Rendering the records of a test's database."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from sqlalchemy import Engine, select

from roster_service.cache.rendered_records import has_rendition, make_rendition_id
from roster_service.cache.renditions import refresh_renditions
from roster_service.db.tables import orgs
from roster_service.db.visibility import ContentRights, MetadataOf
from roster_service.db.visible_orgs import refresh_renderer
from roster_service.query.plan import ResourceView, make_resource_view
from roster_service.schemas.versions import VERSIONS

MUCH = 10**9


def every_rights() -> Iterator[ContentRights]:
    """What callers from whom nothing is withheld may have the right to see beside the plain records, as far as it
    changes a rendered record."""
    for guardians, of_students, of_guardians in itertools.product((False, True), repeat=3):
        others = {MetadataOf.ORGS, MetadataOf.DEMOGRAPHICS} if of_students else set()
        own = {MetadataOf.STUDENTS: of_students, MetadataOf.GUARDIANS: of_guardians}
        yield ContentRights(guardians, frozenset(others | {kind for kind, shown in own.items() if shown}), frozenset())


def every_view() -> dict[int, ResourceView]:
    """The views that have renditions, by the id of the rendition."""
    views = (
        make_resource_view(record, rights)
        for version in VERSIONS
        for record in version.records.values()
        for rights in every_rights()
    )
    return {make_rendition_id(view): view for view in views if has_rendition(view)}


def render_all(engine: Engine, views: Iterable[ResourceView] | None = None) -> None:
    """Renders the records of all views, or of these, as a sync does."""
    with engine.begin() as connection:
        feed_ids = connection.scalars(select(orgs.c.feed_id).distinct()).all()
        refresh_renderer(connection, feed_ids)
        refresh_renditions(connection, every_view().values() if views is None else views, feed_ids, MUCH)
