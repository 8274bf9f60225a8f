"""The database roles that the workers log in as. Each has only the rights that its task needs, and cannot become
another role.

PostgreSQL's roles belong to a whole server, which several rosters may share. So the name of a role begins with the name
of the database. The database stores this base, so that a renamed or copied database still finds its roles.
"""

from __future__ import annotations

import hashlib
import hmac
import itertools
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum

import sqlalchemy as sa
from psycopg2.extensions import encrypt_password
from sqlalchemy.exc import DBAPIError

from roster_service.db import tables
from roster_service.db.tables import ordering_chunks, orderings, pulls
from roster_service.errors import SchemaError

# The longest name in PostgreSQL, in bytes.
NAME_BYTES = 63


class DatabaseRole(Enum):
    """The task of a role."""

    # Reads the roster through row-level security, and makes the orderings of collections.
    SERVING = "serving"
    # Checks the credentials of vendors and clients, and signs tokens.
    ACCOUNTS = "accounts"
    # Counts requests, stores nonces, writes the access log, reads the health of the feeds and the names of callers, and
    # uses the links with which vendors make their secrets.
    COUNTERS = "counters"
    # Serves the console: reads the whole roster, and changes what its forms change.
    CONSOLE = "console"


# The roles of the workers that serve vendors, and those of the console: it counts failed logins, and shows a record as
# a vendor gets it.
VENDOR_ROLES = (DatabaseRole.SERVING, DatabaseRole.ACCOUNTS, DatabaseRole.COUNTERS)
CONSOLE_ROLES = (DatabaseRole.CONSOLE, DatabaseRole.SERVING, DatabaseRole.COUNTERS)


@dataclass(frozen=True)
class Addresses:
    """Where workers find the database, as roles that serve requests: nothing here opens it as the owner of the tables.
    `urls`: of each role; `standby`: of the serving role at the standby, None without one; `database_id`: of
    `roster_state`."""

    urls: Mapping[DatabaseRole, str]
    standby: str | None
    database_id: str


# The tables that the serving role reads through row-level security.
READABLE = (
    *(*tables.ROSTER_TABLES, *tables.PART_TABLES, tables.visible_orgs, tables.visible_feeds),
    *(tables.visible_labels, tables.visibility_labels, tables.departures),
    *(tables.visible_groups, tables.group_members, tables.kept_people),
)
WRITABLE = (orderings, ordering_chunks, pulls)


def _join_names(joined: tuple[sa.Table, ...]) -> str:
    return ", ".join(table.name for table in joined)


_COUNTERS = (tables.rate_windows, tables.rate_hits)
# What the console reads: all but the counters of requests and the sealed halves of the signing keys.
_SHOWN = tuple(
    table
    for table in tables.metadata.sorted_tables
    if table not in (*_COUNTERS, tables.oauth1_nonces, tables.signing_keys)
)
# What the forms of the console write as rows of their own: accounts and rights.
_ACCOUNTS = (
    *(tables.vendors, tables.vendor_defaults, tables.vendor_grants, tables.agreements, tables.published_vendors),
    *(tables.api_keys, tables.oauth_clients, tables.deletion_requests),
    *(tables.operators, tables.operator_sessions, tables.visible_orgs, tables.last_uses, tables.deliveries),
)
# The rows that go with an erased or hidden person.
_OF_PEOPLE = (
    *(tables.users, tables.user_roles, tables.user_profiles, tables.user_agents, tables.enrollments),
    *(tables.demographics, tables.departures, tables.kept_people, tables.orderings, tables.ordering_chunks),
    *(tables.sync_rejections, tables.sync_changes),
)
RIGHTS: Mapping[DatabaseRole, tuple[str, ...]] = {
    DatabaseRole.SERVING: (
        f"SELECT ON {_join_names(READABLE)}",
        f"SELECT, INSERT, UPDATE, DELETE ON {_join_names(WRITABLE)}",
        # Each name is that of one function, so its file alone has the arguments.
        "EXECUTE ON FUNCTION admit_client, admit_key_holder, evict_orderings",
    ),
    DatabaseRole.ACCOUNTS: (
        # Whether this version can serve the database.
        "SELECT ON alembic_version",
        f"SELECT (generation) ON {tables.roster_state.name}",
        f"SELECT ON {_join_names((tables.vendors, tables.vendor_defaults, tables.agreements))}",
        # What everybody may see.
        f"SELECT ON {tables.published_vendors.name}",
        f"SELECT ON {_join_names((tables.oauth_clients, tables.signing_keys))}",
        # The token endpoint refuses a vendor whose agreement does not hold.
        # The access log names the districts.
        "EXECUTE ON FUNCTION find_agreement_refusal, agreed_grants",
    ),
    DatabaseRole.COUNTERS: (
        f"SELECT, INSERT, UPDATE, DELETE ON {_join_names(_COUNTERS)}",
        f"INSERT, DELETE, SELECT (stamp) ON {tables.oauth1_nonces.name}",
        f"SELECT, INSERT, UPDATE ON {_join_names((tables.usage, tables.refused_requests, tables.last_uses))}",
        # Whether the service knows the caller that a refused request names.
        f"SELECT (client_id, vendor_id) ON {tables.oauth_clients.name}",
        f"SELECT (prefix, vendor_id) ON {tables.api_keys.name}",
        f"INSERT ON {tables.audit.name}",
        # The health of the feeds, for monitoring and for `/status`.
        f"SELECT (id, name, enabled, state, pause_from, pause_until) ON {tables.feeds.name}",
        f"SELECT (id, feed_id, outcome, started_at, finished_at, rejected, stamp) ON {tables.sync_runs.name}",
        "EXECUTE ON FUNCTION find_runs_under_way",
        # A vendor makes the secret of its client with a link that an operator sent.
        "EXECUTE ON FUNCTION use_secret_link",
        # A request is refused because an agreement has ended.
        "EXECUTE ON FUNCTION note_ended_agreements",
    ),
    # The scripts that the console starts, which load and remove, are processes with the rights of the owner.
    DatabaseRole.CONSOLE: (
        f"SELECT ON {_join_names(_SHOWN)}, {tables.disclosures.name}",
        f"SELECT (key_id, public_jwk, created_at, retired_at) ON {tables.signing_keys.name}",
        f"INSERT, UPDATE, DELETE ON {_join_names(_ACCOUNTS)}",
        # What it has logged stays, but for the names of an erased person, in reasons and in rules of grants.
        f"INSERT, UPDATE (reason, before, after) ON {tables.changes.name}",
        f"INSERT, UPDATE ON {tables.feeds.name}",
        f"UPDATE ON {_join_names((tables.sync_runs, tables.roster_state))}",
        # A person who is erased or hidden.
        f"DELETE ON {_join_names(_OF_PEOPLE)}",
        f"UPDATE (date_last_modified) ON {tables.users.name}",
        # A client with other scopes sees something else, by the same orgs.
        f"UPDATE (revision) ON {tables.visible_feeds.name}",
        # The groups of grants with rules follow, with departures of what leaves them.
        f"INSERT, UPDATE, DELETE ON {tables.group_members.name}",
        f"INSERT, UPDATE (departed_at) ON {tables.departures.name}",
        f"INSERT, UPDATE ON {tables.kept_people.name}",
        f"INSERT, UPDATE, DELETE ON {tables.exclusions.name}",
        # The rows of the access log that ended workers of the machine have left.
        f"INSERT ON {tables.audit.name}",
        f"INSERT, UPDATE ON {_join_names((tables.usage, tables.refused_requests))}",
        "EXECUTE ON FUNCTION refresh_visible_orgs, find_runs_under_way, next_stamp",
        "EXECUTE ON FUNCTION agreed_grants, limit_grants, find_agreement_refusal, note_ended_agreements",
    ),
}


def name_role(base: str, role: DatabaseRole) -> str:
    """Returns the name of a role. `base`: of `make_role_base`."""
    return f"{base}_{role.value}"


def make_role_base(database: str) -> str:
    """Returns the base of the names of a database's roles: the database's name. A long name is cut and gets a hash, so
    that it stays unique."""
    room = NAME_BYTES - max(len(name_role("", role)) for role in DatabaseRole)
    if len(database.encode()) <= room:
        return database
    suffix = "_" + hashlib.sha256(database.encode()).hexdigest()[:12]
    return database.encode()[: room - len(suffix)].decode(errors="ignore") + suffix


def quote_name(name: str) -> str:
    """Returns a name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def find_role(connection: sa.Connection, role: DatabaseRole) -> str | None:
    """Returns the name of a role of this database; None if it has no roles yet."""
    base = connection.scalar(sa.select(tables.roster_state.c.role_base))
    return None if base is None else name_role(base, role)


def make_role_url(owner_url: str | sa.URL, name: str, password: str | None) -> str:
    """Returns the URL that logs in as a role. `owner_url`: logs in as the owner of the tables; `password`: as for
    `find_password`."""
    owner = sa.make_url(owner_url)
    return owner.set(username=name, password=find_password(owner, name, password)).render_as_string(hide_password=False)


# The option of an engine with the URL of the owner of the tables, where its own is that of a role.
OWNER_URL = "roster_owner_url"


def find_owner_url(connection: sa.Connection) -> sa.URL:
    """Returns the URL that logs in as the owner of the tables. `connection`: as that owner, or as the console."""
    return sa.make_url(connection.get_execution_options().get(OWNER_URL, connection.engine.url))


def make_role_urls(connection: sa.Connection, password: str | None) -> Mapping[DatabaseRole, str]:
    """Returns the URLs that log in as the roles of a database. `connection`: as the owner of its tables; `password`: as
    for `find_password`. Raises SchemaError if the database has no roles yet."""
    base = connection.scalar(sa.select(tables.roster_state.c.role_base))
    if base is None:
        raise SchemaError("the database has no roles that serve requests; run `roster db upgrade`")
    return {role: make_role_url(find_owner_url(connection), name_role(base, role), password) for role in DatabaseRole}


def find_password(owner: sa.URL, name: str, password: str | None) -> str | None:
    """Returns the password of a role, which follows from `password`, which the operator has set, else from the owner's;
    None if the owner logs in without a password. It reveals neither that one nor another role's."""
    secret = owner.password if password is None else password
    return None if secret is None else hmac.digest(secret.encode(), f"roster role {name}".encode(), "sha256").hex()


def ensure_roles(connection: sa.Connection, password: str | None) -> None:
    """Makes the roles that do not exist, lets them log in, and grants them their rights. `password`: as for
    `find_password`.

    Raises SchemaError if the user of this connection may not make roles; the message has the statements
    for an administrator. Raises it too if an existing role of such a name has more rights than it should.
    """
    user, database = connection.execute(sa.text("SELECT current_user, current_database()")).one()
    before = connection.scalar(sa.select(tables.roster_state.c.role_base))
    base = _choose_base(connection, before, database, password)
    names = {role: name_role(base, role) for role in DatabaseRole}
    statements = {name: _make_role_statement(connection, name, password) for name in names.values()}
    # These fit already, or the base would be another one.
    is_shared = _is_used_elsewhere(connection, names.values())
    try:
        with connection.begin_nested():
            for name, statement in statements.items():
                _require_no_excess(connection, name)
                if not is_shared:
                    _ensure_role(connection, name, statement, password)
    except DBAPIError as error:
        raise SchemaError(
            f"the database user {user} may not make or alter the roles that requests are served as; let an "
            f"administrator run `{'; '.join(statements.values())}`, then run `roster db upgrade` again"
        ) from error
    schema = connection.scalar(sa.text("SELECT quote_ident(current_schema())"))
    every_table = _join_names(tuple(tables.metadata.sorted_tables))
    for role, name in names.items():
        # A former version may have granted more.
        connection.execute(_make_statement(f"REVOKE ALL ON {every_table} FROM {quote_name(name)}"))
        for right in (f"USAGE ON SCHEMA {schema}", *RIGHTS[role]):
            connection.execute(_make_statement(f"GRANT {right} TO {quote_name(name)}"))
    for table in connection.scalars(_SECURED).all():
        connection.execute(_make_statement(f"DROP POLICY IF EXISTS console ON {table}"))
        policy = f"CREATE POLICY console ON {table} TO {quote_name(names[DatabaseRole.CONSOLE])} USING (true)"
        connection.execute(_make_statement(policy))
    if before not in (None, base):
        _take_rights(connection, before)
    connection.execute(sa.update(tables.roster_state).values(role_base=base))


def _choose_base(connection: sa.Connection, before: str | None, database: str, password: str | None) -> str:
    """Returns the base of the names of this database's roles: the earlier one, else one of its name. But roles that
    another database uses with another password are left alone, as those of production by a copy of it."""
    others = (make_role_base(f"{database}_{number}") for number in itertools.count(2))
    bases = itertools.chain([] if before is None else [before], [make_role_base(database)], others)
    return next(base for base in bases if not _is_taken(connection, base, password))


def _is_taken(connection: sa.Connection, base: str, password: str | None) -> bool:
    """Whether another database uses the roles of this base with another password."""
    names = [name_role(base, role) for role in DatabaseRole]
    if not _is_used_elsewhere(connection, names):
        return False
    return not all(_can_log_in(make_role_url(connection.engine.url, name, password)) for name in names)


def _is_used_elsewhere(connection: sa.Connection, names: Collection[str]) -> bool:
    return bool(connection.scalar(_USED_ELSEWHERE, {"names": list(names)}))


_USED_ELSEWHERE = sa.text("""
    SELECT EXISTS (SELECT FROM pg_shdepend used JOIN pg_roles made ON made.oid = used.refobjid
        WHERE used.refclassid = CAST('pg_authid' AS regclass) AND made.rolname = ANY (:names) AND used.dbid <> 0
            AND used.dbid <> (SELECT oid FROM pg_database WHERE datname = current_database()))
""")


def _take_rights(connection: sa.Connection, base: str) -> None:
    """Takes all rights on this database's tables from the roles of a base that are there."""
    schema = connection.scalar(sa.text("SELECT quote_ident(current_schema())"))
    every_table = _join_names(tuple(tables.metadata.sorted_tables))
    for role in DatabaseRole:
        name = name_role(base, role)
        if connection.scalar(_MADE, {"name": name}) is not None:
            for objects in (every_table, f"SCHEMA {schema}"):
                connection.execute(_make_statement(f"REVOKE ALL ON {objects} FROM {quote_name(name)}"))


# The tables with row-level security, all of whose rows the console shows.
_SECURED = sa.text(
    "SELECT quote_ident(relname) FROM pg_class "
    "WHERE relrowsecurity AND relnamespace = CAST(quote_ident(current_schema()) AS regnamespace) ORDER BY 1"
)
_MADE = sa.text("SELECT oid FROM pg_roles WHERE rolname = :name")
# Attributes that exempt a role from row-level security or let it make roles, and the roles that its session could
# become.
_EXCESS = sa.text("""
    SELECT concat_ws(', ',
        CASE WHEN made.rolsuper OR made.rolbypassrls THEN 'is exempt from row-level security' END,
        CASE WHEN made.rolcreaterole THEN 'may make roles' END,
        (SELECT 'is a member of ' || string_agg(quote_ident(held.rolname), ' and ')
            FROM pg_auth_members given JOIN pg_roles held ON held.oid = given.roleid WHERE given.member = made.oid)
    ) FROM pg_roles made WHERE made.rolname = :name
""")


def _make_role_statement(connection: sa.Connection, name: str, password: str | None) -> str:
    """The statement after which a role is there, and can log in. `password`: as for `find_password`."""
    verb = "CREATE" if connection.scalar(_MADE, {"name": name}) is None else "ALTER"
    own = find_password(connection.engine.url, name, password)
    login = "LOGIN" if own is None else f"LOGIN PASSWORD '{_encrypt(connection, name, own)}'"
    return f"{verb} ROLE {quote_name(name)} {login} NOINHERIT"


def _ensure_role(connection: sa.Connection, name: str, statement: str, password: str | None) -> None:
    try:
        with connection.begin_nested():
            connection.execute(_make_statement(statement))
    except DBAPIError:
        # An administrator has made the role, and alone may alter it: its password must be that of now already.
        if not _can_log_in(make_role_url(connection.engine.url, name, password)):
            raise


def _can_log_in(url: str) -> bool:
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    try:
        engine.connect().close()
    except DBAPIError:
        return False
    return True


def _make_statement(statement: str) -> sa.TextClause:
    """Returns a statement without bound values. It escapes colons, which names and encrypted passwords may contain."""
    return sa.text(statement.replace(":", "\\:"))


def _encrypt(connection: sa.Connection, name: str, password: str) -> str:
    """Returns the password as the server stores it, so that a log of its statements does not show it in clear text."""
    return str(
        encrypt_password(password, name, scope=connection.connection.dbapi_connection, algorithm="scram-sha-256")
    )


def _require_no_excess(connection: sa.Connection, name: str) -> None:
    """Raises SchemaError if the role has more rights than it should."""
    excess = connection.scalar(_EXCESS, {"name": name})
    if excess:
        raise SchemaError(
            f"the role {name} {excess}; take that back (`ALTER ROLE {quote_name(name)} NOSUPERUSER NOBYPASSRLS "
            "NOCREATEROLE`, `REVOKE`), then run `roster db upgrade` again"
        )


def require_role(engine: sa.Engine) -> None:
    """Raises SchemaError if `engine` cannot log in as its role, or if the role has more rights than it
    should. `engine`: on a URL of `make_role_urls`."""
    name = str(engine.url.username)
    try:
        with engine.connect() as connection:
            user = connection.scalar(sa.text("SELECT session_user"))
            _require_no_excess(connection, name)
    except DBAPIError:
        raise SchemaError(
            f"the service cannot log in to the database as {quote_name(name)}: run `roster db upgrade`, which gives "
            "the role its password, let the server's pg_hba.conf admit it, or set ROSTER_ROLE_PASSWORD"
        ) from None
    if user != name:
        raise SchemaError(f"the service asked to log in as {quote_name(name)}, and is {quote_name(user)}")
