"""The database roles that the workers log in as: each has the least rights for its task, and can become no other.

A role belongs to a whole server, and several rosters may share one: so the names begin with the database's, and this
beginning is kept in the database, where a copy or a new name of it finds the roles again.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from enum import Enum

from psycopg2.extensions import encrypt_password
from sqlalchemy import URL, Connection, Engine, Table, TextClause, make_url, select, text, update
from sqlalchemy.exc import DBAPIError

from roster_service.db import tables
from roster_service.db.tables import ordering_chunks, orderings, rendered_records, renditions
from roster_service.errors import DatabaseUnavailableError

# What PostgreSQL keeps of a name, in bytes.
NAME_BYTES = 63


class Role(Enum):
    """What a role is for."""

    # Reads the roster through row-level security, and keeps the orderings of collections.
    SERVING = "serving"
    # Checks the credentials of vendors and clients, and signs tokens.
    ACCOUNTS = "accounts"
    # Counts requests, and writes the access log.
    COUNTERS = "counters"


# The tables whose rows row-level security shows to the serving role.
READABLE = (*tables.ROSTER_TABLES, *tables.PART_TABLES, rendered_records, tables.visible_orgs)
WRITABLE = (orderings, ordering_chunks)


def _list(found: tuple[Table, ...]) -> str:
    return ", ".join(table.name for table in found)


_COUNTERS = (tables.rate_windows, tables.rate_hits)
RIGHTS: Mapping[Role, tuple[str, ...]] = {
    Role.SERVING: (
        f"SELECT ON {_list(READABLE)}",
        # Where the roster stands, and which renditions there are, nobody has to be kept from.
        "SELECT (revision, as_of, deletions_since) ON roster_state",
        f"SELECT (id, key) ON {renditions.name}",
        f"SELECT, INSERT, UPDATE, DELETE ON {_list(WRITABLE)}",
        "EXECUTE ON FUNCTION admit_client(text, numeric, numeric, numeric, uuid, text, boolean), "
        "admit_key_holder(bytea, boolean), evict_orderings(bigint, bigint)",
    ),
    Role.ACCOUNTS: (f"SELECT ON {_list((tables.vendors, tables.oauth_clients, tables.signing_keys))}",),
    Role.COUNTERS: (
        f"SELECT, INSERT, UPDATE, DELETE ON {_list(_COUNTERS)}",
        f"SELECT, INSERT, UPDATE ON {tables.usage.name}",
        f"INSERT, DELETE, SELECT (at) ON {tables.audit.name}",
    ),
}


def name_role(base: str, role: Role) -> str:
    """The name of a role, by what the names of a database's roles begin with."""
    return f"{base}_{role.value}"


def make_role_base(database: str) -> str:
    """What the names of the roles begin with: the database's name; a long one is cut, and told apart by a hash."""
    room = NAME_BYTES - max(len(name_role("", role)) for role in Role)
    if len(database.encode()) <= room:
        return database
    mark = "_" + hashlib.sha256(database.encode()).hexdigest()[:12]
    return database.encode()[: room - len(mark)].decode(errors="ignore") + mark


def quote_name(name: str) -> str:
    """A name as a statement has it."""
    return '"' + name.replace('"', '""') + '"'


def find_role(connection: Connection, role: Role) -> str | None:
    """The name of a role of this database; None where it has no roles yet."""
    base = connection.scalar(select(tables.roster_state.c.role_base))
    return None if base is None else name_role(base, role)


def make_role_url(owner_url: str | URL, name: str, password: str | None) -> str:
    """The URL that logs in as a role, where the owner of the tables logs in with `owner_url`. `password`: as for
    `find_password`."""
    owner = make_url(owner_url)
    return owner.set(username=name, password=find_password(owner, name, password)).render_as_string(hide_password=False)


def make_role_urls(connection: Connection, password: str | None) -> Mapping[Role, str]:
    """The URLs that log in as the roles of the database of this connection, which is its owner's. `password`: as for
    `find_password`. Raises DatabaseUnavailableError where the database has no roles yet."""
    base = connection.scalar(select(tables.roster_state.c.role_base))
    if base is None:
        raise DatabaseUnavailableError("the database has no roles that serve requests; run `roster db upgrade`")
    return {role: make_role_url(connection.engine.url, name_role(base, role), password) for role in Role}


def find_password(owner: URL, name: str, password: str | None) -> str | None:
    """The password of a role: the one that the operator has set, else one that follows from the owner's; None where
    the owner logs in without one. Who knows a role's password learns nothing of the owner's, or of another role's."""
    if password is not None or owner.password is None:
        return password
    return hmac.digest(str(owner.password).encode(), f"roster role {name}".encode(), "sha256").hex()


def ensure_roles(connection: Connection, password: str | None) -> None:
    """Makes the roles where there are none, lets them log in, and grants them their rights. `password`: as for
    `find_password`.

    Raises DatabaseUnavailableError where the user of this connection may not make roles, with what an administrator has
    to run, and where a role of such a name could do more than it should.
    """
    user, database = connection.execute(text("SELECT current_user, current_database()")).one()
    base = connection.scalar(select(tables.roster_state.c.role_base)) or make_role_base(database)
    names = {role: name_role(base, role) for role in Role}
    try:
        with connection.begin_nested():
            for name in names.values():
                _make(connection, name, find_password(connection.engine.url, name, password))
    except DBAPIError as error:
        statements = "; ".join(f"CREATE ROLE {quote_name(name)} LOGIN PASSWORD '...'" for name in names.values())
        raise DatabaseUnavailableError(
            f"the database user {user} may not make the roles that requests are served as; let an administrator run "
            f"`{statements}`, with the password that ROSTER_ROLE_PASSWORD names, then run `roster db upgrade` again"
        ) from error
    schema = connection.scalar(text("SELECT quote_ident(current_schema())"))
    for role, name in names.items():
        for right in (f"USAGE ON SCHEMA {schema}", *RIGHTS[role]):
            connection.execute(_spell(f"GRANT {right} TO {quote_name(name)}"))
    connection.execute(update(tables.roster_state).values(role_base=base))


_MADE = text("SELECT rolcanlogin FROM pg_roles WHERE rolname = :name")
# Attributes that row-level security does not hold, and roles that a session could become.
_EXCESS = text("""
    SELECT concat_ws(', ',
        CASE WHEN made.rolsuper OR made.rolbypassrls THEN 'is exempt from row-level security' END,
        CASE WHEN made.rolcreaterole THEN 'may make roles' END,
        (SELECT 'is a member of ' || string_agg(quote_ident(held.rolname), ' and ')
            FROM pg_auth_members given JOIN pg_roles held ON held.oid = given.roleid WHERE given.member = made.oid)
    ) FROM pg_roles made WHERE made.rolname = :name
""")


def _make(connection: Connection, name: str, password: str | None) -> None:
    can_login = connection.scalar(_MADE, {"name": name})
    _require_least(connection, name)
    secret = "" if password is None else f" PASSWORD '{_encrypt(connection, name, password)}'"
    if can_login is None:
        connection.execute(_spell(f"CREATE ROLE {quote_name(name)} LOGIN NOINHERIT{secret}"))
        return
    try:
        with connection.begin_nested():
            connection.execute(_spell(f"ALTER ROLE {quote_name(name)} LOGIN{secret}"))
    except DBAPIError:
        # Of an administrator, who has given it a password.
        if not can_login:
            raise


def _spell(statement: str) -> TextClause:
    """A statement that takes no values: a colon, in a name or in an encrypted password, names none."""
    return text(statement.replace(":", "\\:"))


def _encrypt(connection: Connection, name: str, password: str) -> str:
    """The password as the server keeps it, so that no log of its statements has it in clear."""
    return str(
        encrypt_password(password, name, scope=connection.connection.dbapi_connection, algorithm="scram-sha-256")
    )


def _require_least(connection: Connection, name: str) -> None:
    excess = connection.scalar(_EXCESS, {"name": name})
    if excess:
        raise DatabaseUnavailableError(
            f"the role {name} {excess}; take that back (`ALTER ROLE {quote_name(name)} NOSUPERUSER NOBYPASSRLS "
            "NOCREATEROLE`, `REVOKE`), then run `roster db upgrade` again"
        )


def require_role(engine: Engine) -> None:
    """Raises DatabaseUnavailableError where the connections of `engine`, of `make_role_urls`, cannot log in as their
    role, or where it could do more than it should."""
    name = str(engine.url.username)
    try:
        with engine.connect() as connection:
            user = connection.scalar(text("SELECT session_user"))
            _require_least(connection, name)
    except DBAPIError:
        raise DatabaseUnavailableError(
            f"the service cannot log in to the database as {quote_name(name)}: run `roster db upgrade`, which gives "
            "the role its password, let the server's pg_hba.conf admit it, or set ROSTER_ROLE_PASSWORD"
        ) from None
    if user != name:
        raise DatabaseUnavailableError(f"the service asked to log in as {quote_name(name)}, and is {quote_name(user)}")
