"""The role that serves requests: it reads the roster through row-level security, and nothing else.

A role belongs to a whole server, and several rosters may share one: so its name follows from the database's, and is
kept in the database, where a copy or a new name of it finds it again.
"""

from __future__ import annotations

import hashlib

from sqlalchemy import Connection, Engine, select, text, update
from sqlalchemy.exc import DBAPIError

from roster_service.db import tables
from roster_service.db.document_tables import documents, shelves
from roster_service.db.engine import FORGETFUL_SESSIONS
from roster_service.db.walk_tables import walk_chunks, walks
from roster_service.errors import DatabaseUnavailableError, SettingError

SUFFIX = "_serving"
# What PostgreSQL keeps of a name, in bytes.
NAME_BYTES = 63
READABLE = (
    *tables.ROSTER_TABLES,
    tables.class_terms,
    tables.user_roles,
    tables.user_profiles,
    tables.user_agents,
    documents,
)
# The orders of collections, which the one that serves keeps for itself.
WRITABLE = (walks, walk_chunks)
# What it reads else, and nobody has to be kept from: where the roster stands, and which shelves of documents do.
STATE = ("SELECT (revision, as_of, deletions_since) ON roster_state", f"SELECT (id, key, revision) ON {shelves.name}")
CALLABLE = (
    "set_sight(text[], text[], boolean)",
    "keep_sight(text[], text[])",
    "grants_every_org(text[], text[])",
    "admit_client(text, numeric, numeric, text, boolean)",
    "find_key_holder(bytea)",
    "client_stands(text, numeric, numeric, text, integer, bigint, timestamptz, timestamptz)",
    "recall_document(text, numeric, numeric, text, boolean, integer, bigint, timestamptz, timestamptz, text, text)",
    "readmit_client(text, numeric, numeric, text, boolean, integer, bigint, timestamptz, timestamptz, text)",
)


def name_role(database: str) -> str:
    """The name of the role for a database; a long one is cut, and told apart by a hash of the whole."""
    name = database + SUFFIX
    if len(name.encode()) <= NAME_BYTES:
        return name
    mark = "_" + hashlib.sha256(database.encode()).hexdigest()[:12] + SUFFIX
    return database.encode()[: NAME_BYTES - len(mark)].decode(errors="ignore") + mark


def quote_name(name: str) -> str:
    """A name as a statement has it."""
    return '"' + name.replace('"', '""') + '"'


def find_serving_role(connection: Connection) -> str | None:
    """The name of the role; None where the database has none yet."""
    return connection.scalar(select(tables.roster_state.c.serving_role))


def ensure_serving_role(connection: Connection) -> None:
    """Makes the role where there is none, lets the user of this connection become it, and grants it what it reads.

    Raises DatabaseUnavailableError where that user may not, with what an administrator has to run, and where a role of
    that name would not be held by row-level security.
    """
    user, database = connection.execute(text("SELECT current_user, current_database()")).one()
    role = find_serving_role(connection) or name_role(database)
    try:
        with connection.begin_nested():
            _make_role(connection, role)
            _let_become(connection, role)
    except DBAPIError as error:
        raise DatabaseUnavailableError(
            f"the database user {user} may not make the role that serves requests; let an administrator run "
            f"`CREATE ROLE {quote_name(role)} NOLOGIN; GRANT {quote_name(role)} TO {quote_name(user)}`, "
            "then run `roster db upgrade` again"
        ) from error
    _grant(connection, role)
    connection.execute(update(tables.roster_state).values(serving_role=role))


def _make_role(connection: Connection, role: str) -> None:
    rights = text("SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = :role")
    is_exempt = connection.scalar(rights, {"role": role})
    if is_exempt:
        raise DatabaseUnavailableError(
            f"the role {role} is exempt from row-level security; run `ALTER ROLE {quote_name(role)} "
            "NOSUPERUSER NOBYPASSRLS`, then `roster db upgrade` again"
        )
    if is_exempt is None:
        connection.execute(text(f"CREATE ROLE {quote_name(role)} NOLOGIN"))


def _let_become(connection: Connection, role: str) -> None:
    # Whoever makes a role is a member of it, which from PostgreSQL 16 on does not mean that they may become it.
    right = "SET" if connection.scalar(text("SHOW server_version_num")) >= "160000" else "MEMBER"
    if not connection.scalar(text("SELECT pg_has_role(current_user, :role, :right)"), {"role": role, "right": right}):
        connection.execute(text(f"GRANT {quote_name(role)} TO CURRENT_USER"))


def _grant(connection: Connection, role: str) -> None:
    names = ", ".join(table.name for table in READABLE)
    schema = connection.scalar(text("SELECT quote_ident(current_schema())"))
    kept = ", ".join(table.name for table in WRITABLE)
    for right in (
        f"USAGE ON SCHEMA {schema}",
        f"SELECT ON {names}",
        *STATE,
        f"SELECT, INSERT, UPDATE, DELETE ON {kept}",
        f"EXECUTE ON FUNCTION {', '.join(CALLABLE)}",
    ):
        connection.execute(text(f"GRANT {right} TO {quote_name(role)}"))


def require_serving_role(engine: Engine, role: str) -> None:
    """Raises DatabaseUnavailableError where the connections of `engine` cannot become the role, or where row-level
    security would not hold them; SettingError where they are not in it."""
    advice = f'`GRANT {quote_name(role)} TO "the service\'s user"`, or run `roster db upgrade` as that user'
    try:
        with engine.connect() as connection:
            user, held = connection.execute(
                text("SELECT current_user, bool_and(row_security_active(name)) FROM unnest(:names) AS name"),
                {"names": [table.name for table in READABLE]},
            ).one()
    except DBAPIError:
        raise DatabaseUnavailableError(f"the service cannot become the role {role}; {advice}") from None
    if user != role:
        raise SettingError(FORGETFUL_SESSIONS)
    if not held:
        raise DatabaseUnavailableError(f"row-level security does not hold the role {role}; run `roster db upgrade`")
