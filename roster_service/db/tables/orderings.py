"""The tables of orderings: the ids of a collection in their order, for one set of visible orgs and one revision.

Both are UNLOGGED: after a crash, the next request for an ordering makes it again.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Identity, Integer, LargeBinary, Table, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import TIMESTAMP

from roster_service.db.tables.base import CText, CTexts, metadata

orderings = Table(
    "orderings",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    # SHA-256 of the query: path, filter, sort and content rights.
    Column("query", LargeBinary, nullable=False),
    # The hash of the caller's visible orgs, and whether it sees guardians. Callers with the same hash share orderings.
    Column("visible_set", CText, nullable=False),
    Column("revision", BigInteger, nullable=False),
    # The vendor whose request made it: half of the bound on all orderings applies to each vendor.
    Column("vendor_id", Integer, nullable=False),
    Column("total", BigInteger, nullable=False),
    # The size of its ids; 0: they were only counted, and are not stored.
    Column("bytes", BigInteger, nullable=False),
    Column("made_at", TIMESTAMP(timezone=True), nullable=False, server_default=text("now()")),
    UniqueConstraint("query", "visible_set", "revision"),
    prefixes=["UNLOGGED"],
)

# All chunks of an ordering have the same number of ids, except the last one.
ordering_chunks = Table(
    "ordering_chunks",
    metadata,
    Column("ordering_id", BigInteger, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("ids", CTexts, nullable=False),
    prefixes=["UNLOGGED"],
)
