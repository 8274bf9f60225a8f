"""Upgrades a database to the tables of this version, with Alembic. The revisions are in `migrations/versions`.

Requests go on during an upgrade. An upgrade waits at most `LOCK_SECONDS` for a lock, because requests wait as long
behind it; then it releases all its locks and begins again, at most `ATTEMPTS` times. (A sync, for example, holds its
locks until it ends.)
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from psycopg2.errors import DeadlockDetected, InsufficientPrivilege, LockNotAvailable
from sqlalchemy.exc import OperationalError, ProgrammingError

from roster_service.db import migrations
from roster_service.db.roles import ensure_roles
from roster_service.db.sql_objects import apply_objects
from roster_service.errors import DatabaseUnavailableError, SchemaError
from roster_service.roster import revisions
from roster_service.roster.revisions import is_newer, read_revisions, refuse_newer

# An advisory lock, so that two commands at once do not both create the first table.
MIGRATION_LOCK = 0x526F7374
LOCK_SECONDS = 2
PAUSE_SECONDS = 1
ATTEMPTS = 20


def make_config() -> Config:
    """Alembic's configuration. It needs no file, because the package contains the revisions."""
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    config.set_main_option("path_separator", "os")
    config.set_main_option("version_locations", os.pathsep.join(map(str, revisions.FOLDERS)))
    return config


def upgrade(engine: sa.Engine, role_password: str | None = None) -> tuple[str | None, str]:
    """Migrates to the newest revision, and makes the roles of the workers, in one transaction.

    `role_password`: as for `find_password`. Returns (revision before, revision after). Raises SchemaError for the
    database of a newer version, and DatabaseUnavailableError if other sessions lock a table too long.
    """
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE_SECONDS)
        try:
            return _upgrade(engine, role_password)
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


def _upgrade(engine: sa.Engine, role_password: str | None) -> tuple[str | None, str]:
    with engine.begin() as connection:
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
        connection.execute(sa.text(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'"))
        before, head = read_revisions(connection)
        if before != head:
            if is_newer(before):
                raise refuse_newer(before)
            config = make_config()
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            apply_objects(connection)
        ensure_roles(connection, role_password)
        return before, head
