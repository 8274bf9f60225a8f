"""The export of accounts: SQL that brings vendors, clients, keys, operators, feeds and both logs to another database.

It has neither records of the roster, which the next sync loads there, nor anything that follows from them. It is plain
SQL with the rows as COPY takes them, so any `psql` loads it into any PostgreSQL that the service supports: a dump of a
newer server cannot be loaded into an older one.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from typing import Any

import sqlalchemy as sa

from roster_service.db.roles import quote_name
from roster_service.db.tables import (
    agreements,
    api_keys,
    audit,
    audit_days,
    audit_people,
    changes,
    deletion_requests,
    deliveries,
    exclusions,
    feeds,
    kept_people,
    last_uses,
    oauth_clients,
    operators,
    refused_requests,
    signing_keys,
    usage,
    vendor_defaults,
    vendor_grants,
    vendors,
)

# In the order of their references.
EXPORTED = (
    *(feeds, vendor_defaults, vendors, agreements, vendor_grants, kept_people, api_keys, oauth_clients, signing_keys),
    *(
        deliveries,
        deletion_requests,
        operators,
        exclusions,
        last_uses,
        usage,
        refused_requests,
        audit,
        audit_days,
        audit_people,
        changes,
    ),
)
# What follows from the roster: the next sync sets it.
_DERIVED = frozenset(
    {
        *(feeds.c.last_digest, feeds.c.fingerprinted, feeds.c.revision, feeds.c.as_of, feeds.c.deletions_since),
        *(vendors.c.floor, oauth_clients.c.floor, oauth_clients.c.as_of),
    }
)


def export_accounts(connection: sa.Connection) -> Iterator[str]:
    """Yields the SQL, in parts. `connection`: as the owner of the tables; its transaction should have one snapshot."""
    driver: Any = connection.connection.driver_connection
    yield "SET client_encoding = 'UTF8';\nBEGIN;\n"
    for table in EXPORTED:
        columns = ", ".join(quote_name(column.name) for column in table.c if column not in _DERIVED)
        name = quote_name(table.name)
        if table is vendor_defaults:
            # Every database has its row.
            yield f"DELETE FROM {name};\n"  # noqa: S608  (a name of our own)
        rows = StringIO()
        with driver.cursor() as cursor:
            cursor.copy_expert(f"COPY {name} ({columns}) TO STDOUT", rows)
        yield f"COPY {name} ({columns}) FROM stdin;\n{rows.getvalue()}\\.\n"
        yield from _continue_identity(table)
    # Another roster does not know what the vendors' copies have.
    yield "UPDATE vendors SET floor = next_stamp();\nSELECT refresh_visible_orgs(id) FROM vendors;\nCOMMIT;\n"


def _continue_identity(table: sa.Table) -> Iterator[str]:
    """Yields the statement after which new rows get ids that no exported row has."""
    for column in table.c:
        if column.identity is not None:
            newest = f"max({quote_name(column.name)})"
            sequence = f"pg_get_serial_sequence('{table.name}', '{column.name}')"
            value = f"setval({sequence}, coalesce({newest}, 1), {newest} IS NOT NULL)"
            yield f"SELECT {value} FROM {quote_name(table.name)};\n"  # noqa: S608  (names of our own)
