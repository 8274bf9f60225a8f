"""The tables that keep walks: the ids of a collection in their order, for one caller's rights and one roster.

Both are UNLOGGED: whatever is lost in a crash is made again by the next request that wants it.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, Table
from sqlalchemy.dialects.postgresql import TIMESTAMP

from roster_service.db.tables import CTexts, metadata

walks = Table(
    "walks",
    metadata,
    # SHA-256 of all that decides which records a walk has, and in which order.
    Column("key", LargeBinary, primary_key=True),
    # Of the roster that it was made from.
    Column("revision", BigInteger, nullable=False),
    Column("total", BigInteger, nullable=False),
    # What its ids take; 0: they were counted, and not kept.
    Column("bytes", BigInteger, nullable=False),
    Column("used_at", TIMESTAMP(timezone=True), nullable=False),
    Index(None, "used_at"),
    prefixes=["UNLOGGED"],
)

# Every chunk but the last of a walk has as many ids as the others.
walk_chunks = Table(
    "walk_chunks",
    metadata,
    Column("walk", LargeBinary, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("ids", CTexts, nullable=False),
    prefixes=["UNLOGGED"],
)
