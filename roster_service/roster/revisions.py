"""The revision of a database beside those of this version.

The revisions are read from their files: Alembic knows them, too, and takes a fifth of a second of each command to be
imported.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import sqlalchemy as sa

from roster_service.db import migrations
from roster_service.db.embedded_server import open_database
from roster_service.db.engine import make_engine, require_reachable
from roster_service.db.tables import roster_state
from roster_service.errors import SchemaError
from roster_service.settings import Settings

FOLDERS = (Path(migrations.__file__).parent / "versions",)
# This version can serve the tables of a newer version if they are of this generation. If an older version cannot serve
# the tables of a migration, the migration adds one to `roster_state.generation`, and its version adds one here.
GENERATION = 1
_NAMED = re.compile(r'^(?P<what>revision|down_revision) = (?:None|"(?P<name>\w+)")$', re.MULTILINE)


def list_revisions() -> dict[str, str | None]:
    """Returns the revisions of this version, each with the one before it."""
    files = (path for folder in FOLDERS for path in sorted(folder.glob("*.py")))
    named = ({found["what"]: found["name"] for found in _NAMED.finditer(path.read_text())} for path in files)
    return {str(names["revision"]): names["down_revision"] for names in named if "revision" in names}


def read_revisions(connection: sa.Connection) -> tuple[str | None, str]:
    """Returns (revision of the database, or None if it has no tables yet; newest revision of this version).

    Raises SchemaError if the installation has no revisions, because then every database would seem newer.
    """
    known = list_revisions()
    if not known:
        raise SchemaError(f"this installation has no migrations in {FOLDERS[0]}; install the service again")
    [newest] = {*known} - {*known.values()}
    current = None
    if connection.scalar(sa.select(sa.func.to_regclass("alembic_version"))) is not None:
        current = connection.scalar(sa.text("SELECT version_num FROM alembic_version"))
    return current, newest


def is_newer(current: str | None) -> bool:
    """Returns whether a revision of a database is of a newer version than this one."""
    return current is not None and current not in list_revisions()


def refuse_newer(current: str | None) -> SchemaError:
    """Makes the refusal of a database of a newer version."""
    return SchemaError(f"the database is at revision {current}, of a newer version; install the newer version")


def require_servable(engine: sa.Engine) -> None:
    """Raises SchemaError unless the tables are those of this version, or of a newer version that this one
    can serve. The latter allows machines to be upgraded one after the other, after the database."""
    with engine.connect() as connection:
        current, _ = read_revisions(connection)
        newer = is_newer(current)
        if newer and connection.scalar(sa.select(roster_state.c.generation)) != GENERATION:
            raise refuse_newer(current)
    if not newer:
        require_current(engine)


def require_current(engine: sa.Engine) -> None:
    """Raises SchemaError if the database is not at the revision of this version."""
    with engine.connect() as connection:
        current, head = read_revisions(connection)
    if current != head:
        if is_newer(current):
            raise refuse_newer(current)
        state = "has no tables yet" if current is None else f"is at revision {current}, not {head}"
        raise SchemaError(f"the database {state}; run `roster db upgrade`")


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
