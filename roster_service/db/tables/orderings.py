"""The tables that keep orderings: the ids of a collection in their order, for one set of visible orgs and one revision.

Both are UNLOGGED: whatever is lost in a crash is made again by the next request that wants it.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Identity, Integer, LargeBinary, Table, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import TIMESTAMP

from roster_service.db.tables.roster import CText, CTexts, metadata

orderings = Table(
    "orderings",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    # SHA-256 of what a request asks for: path, filter, sort and content rights.
    Column("query", LargeBinary, nullable=False),
    # The hash of what the caller sees, orgs and guardians: who sees the same shares orderings.
    Column("visible_set", CText, nullable=False),
    Column("revision", BigInteger, nullable=False),
    # Whose request made it: the bound on what is kept counts for each vendor.
    Column("vendor_id", Integer, nullable=False),
    Column("total", BigInteger, nullable=False),
    # What its ids take; 0: they were counted, and not kept.
    Column("bytes", BigInteger, nullable=False),
    Column("made_at", TIMESTAMP(timezone=True), nullable=False, server_default=text("now()")),
    UniqueConstraint("query", "visible_set", "revision"),
    prefixes=["UNLOGGED"],
)

# Every chunk but the last of an ordering has as many ids as the others.
ordering_chunks = Table(
    "ordering_chunks",
    metadata,
    Column("ordering_id", BigInteger, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("ids", CTexts, nullable=False),
    prefixes=["UNLOGGED"],
)
