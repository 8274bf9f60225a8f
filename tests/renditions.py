"""Rendering the records of a test's database."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from sqlalchemy import Engine

from roster_service.cache.rendered_records import has_rendition, key_of
from roster_service.cache.renditions import refresh_renditions
from roster_service.db.visibility import MetadataOf, Sight
from roster_service.db.visible_orgs import refresh_renderer
from roster_service.query.plan import View, make_view
from roster_service.schemas.versions import VERSIONS

MUCH = 10**9


def every_sight() -> Iterator[Sight]:
    """What callers may have the right to see beside the plain records, as far as it changes a rendered record."""
    for guardians, of_students, of_guardians in itertools.product((False, True), repeat=3):
        others = {MetadataOf.ORGS, MetadataOf.DEMOGRAPHICS} if of_students else set()
        own = {MetadataOf.STUDENTS: of_students, MetadataOf.GUARDIANS: of_guardians}
        yield Sight(guardians, frozenset(others | {kind for kind, shown in own.items() if shown}))


def every_view() -> dict[str, View]:
    """The views that have renditions, by the key of the rendition."""
    views = (
        make_view(record, sight)
        for version in VERSIONS
        for record in version.records.values()
        for sight in every_sight()
    )
    return {key_of(view): view for view in views if has_rendition(view)}


def render_all(engine: Engine, views: Iterable[View] | None = None) -> None:
    """Renders the records of all views, or of these, as a sync does."""
    with engine.begin() as connection:
        refresh_renderer(connection)
        refresh_renditions(connection, every_view().values() if views is None else views, MUCH)
