"""The engine of commands and of the sync, as the owner of the tables."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import sqlalchemy as sa

from roster_service.db.embedded_server import open_database
from roster_service.db.engine import make_engine, require_reachable
from roster_service.roster.upgrades import require_current
from roster_service.settings import Settings


@contextlib.contextmanager
def open_roster_engine(settings: Settings) -> Iterator[sa.Engine]:
    """Yields an engine with write access on the database of the settings. Raises DatabaseUnavailableError if the
    database is not reachable or not migrated."""
    with open_database(settings) as url:
        engine = make_engine(url, jobs=settings.sync_jobs)
        try:
            require_reachable(engine)
            require_current(engine)
            yield engine
        finally:
            engine.dispose()
