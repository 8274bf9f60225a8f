"""Upgrades a database to the tables of this version, with Alembic. The revisions are in `migrations/versions`.

Requests go on during an upgrade. An upgrade waits at most `LOCK_SECONDS` for a lock, because requests wait as long
behind it; then it releases all its locks and begins again, at most `ATTEMPTS` times. (A sync, for example, holds its
locks until it ends.)
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from psycopg2.errors import DeadlockDetected, InsufficientPrivilege, LockNotAvailable
from sqlalchemy.exc import OperationalError, ProgrammingError

from roster_service.db import migrations
from roster_service.db.embedded_server import open_database
from roster_service.db.engine import make_engine, require_reachable
from roster_service.db.roles import ensure_roles
from roster_service.db.sql_objects import apply_objects
from roster_service.db.tables import roster_state, vendors
from roster_service.errors import DatabaseUnavailableError, SchemaError
from roster_service.roster.labels import FollowParts, label_unlabelled
from roster_service.roster.visible_orgs import refresh_visible_orgs
from roster_service.settings import Settings

# An advisory lock, so that two commands at once do not both create the first table.
MIGRATION_LOCK = 0x526F7374
# This version can serve the tables of a newer version if they are of this generation. If an older version cannot serve
# the tables of a migration, the migration adds one to `roster_state.generation`, and its version adds one here.
GENERATION = 1
# The revisions of databases that were made by checkouts before the first release. They cannot be upgraded.
UNRELEASED = re.compile(r"[0-9]{4}|2026_11_\w+")
LOCK_SECONDS = 2
PAUSE_SECONDS = 1
ATTEMPTS = 20


def make_config() -> Config:
    """Returns Alembic's configuration. It needs no file, because the package contains the revisions."""
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    config.set_main_option("path_separator", "os")
    return config


def read_revisions(connection: sa.Connection) -> tuple[str | None, str]:
    """Returns (revision of the database, or None if it has no tables yet; newest revision of this version).

    Raises SchemaError if the installation has no revisions, because then every database would seem newer,
    and if the database was made before the first release.
    """
    scripts = ScriptDirectory.from_config(make_config())
    head = scripts.get_current_head()
    if head is None:
        raise SchemaError(f"this installation has no migrations in {scripts.versions}; install the service again")
    current = MigrationContext.configure(connection).get_current_revision()
    if current is not None and UNRELEASED.fullmatch(current):
        raise SchemaError(
            f"the database is at revision {current}, from before the first release, which cannot be upgraded; "
            "keep its accounts with `roster db export-accounts` of the version that made it, and load the exports into "
            "a new database, or with a new ROSTER_HOME"
        )
    return current, head


def _is_newer(current: str | None) -> bool:
    """Whether a revision is of a newer version than this one."""
    known = {script.revision for script in ScriptDirectory.from_config(make_config()).walk_revisions()}
    return current is not None and current not in known


def _refuse_newer(current: str | None) -> SchemaError:
    return SchemaError(f"the database is at revision {current}, of a newer version; install the newer version")


def upgrade(engine: sa.Engine, role_password: str | None = None, follow: FollowParts = iter) -> tuple[str | None, str]:
    """Migrates to the newest revision, labels records without a label, and makes the roles of the workers, in one
    transaction.

    `role_password`: as for `find_password`; `follow`: as for `label_unlabelled`. Returns (revision before, revision
    after). Raises SchemaError for the database of a newer version, and DatabaseUnavailableError if other sessions lock
    a table too long.
    """
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE_SECONDS)
        try:
            return _upgrade(engine, role_password, follow)
        except OperationalError as error:
            if not isinstance(error.orig, LockNotAvailable | DeadlockDetected):
                raise
        except ProgrammingError as error:
            if not isinstance(error.orig, InsufficientPrivilege):
                raise
            raise _refuse_rights(engine, error.orig) from None
    raise DatabaseUnavailableError(
        "the tables could not be locked, because a sync or a long query uses them; "
        "run `roster db upgrade` again when it is done"
    )


def _refuse_rights(engine: sa.Engine, error: InsufficientPrivilege) -> SchemaError:
    """The refusal for a user who may not make or change the tables. The words of the server name objects alone."""
    with engine.connect() as connection:
        user, database, may_make = connection.execute(
            sa.text(
                "SELECT quote_ident(current_user), quote_ident(current_database()), "
                "has_schema_privilege(current_schema(), 'CREATE')"
            )
        ).one()
    if may_make:
        reason = f"{error.diag.message_primary}; let an administrator make {user} the owner of the tables"
    else:
        reason = (
            f"the user {user} may not make tables here; let an administrator make {user} the owner of the database: "
            f"`ALTER DATABASE {database} OWNER TO {user}`"
        )
    return SchemaError(f"{reason}; then run `roster db upgrade` again")


def _upgrade(engine: sa.Engine, role_password: str | None, follow: FollowParts) -> tuple[str | None, str]:
    with engine.begin() as connection:
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
        connection.execute(sa.text(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'"))
        before, head = read_revisions(connection)
        if before != head:
            if _is_newer(before):
                raise _refuse_newer(before)
            config = make_config()
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            apply_objects(connection)
            label_unlabelled(connection, follow)
            refresh_visible_orgs(connection, *connection.scalars(sa.select(vendors.c.id)))
        ensure_roles(connection, role_password)
        return before, head


def require_servable(engine: sa.Engine) -> None:
    """Raises SchemaError unless the tables are those of this version, or of a newer version that this one
    can serve. The latter allows machines to be upgraded one after the other, after the database."""
    with engine.connect() as connection:
        current, _ = read_revisions(connection)
        is_newer = _is_newer(current)
        if is_newer and connection.scalar(sa.select(roster_state.c.generation)) != GENERATION:
            raise _refuse_newer(current)
    if not is_newer:
        require_current(engine)


def require_current(engine: sa.Engine) -> None:
    """Raises SchemaError if the database is not at the revision of this version."""
    with engine.connect() as connection:
        current, head = read_revisions(connection)
    if current != head:
        if _is_newer(current):
            raise _refuse_newer(current)
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
