"""The tables behind access: API keys, throttle counters, usage, the access log, and what grants open.

The counters are UNLOGGED: they change with every request, and after a crash nobody misses them.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Date, ForeignKey, Identity, Index, Integer, LargeBinary, Table, text
from sqlalchemy.dialects.postgresql import TIMESTAMP

from roster_service.db.tables import CText, Stamp, metadata

# Counters compare instants that may lie closer together than a millisecond.
Moment = TIMESTAMP(timezone=True)

api_keys = Table(
    "api_keys",
    metadata,
    # SHA-256 of the whole key, which has 256 random bits.
    Column("key_hash", LargeBinary, primary_key=True),
    Column("vendor_id", ForeignKey("vendors.id", ondelete="CASCADE"), nullable=False, index=True),
    # The readable beginning, by which people talk about a key.
    Column("prefix", CText, nullable=False),
    Column("created_at", Stamp, nullable=False, server_default=text("now()")),
    # Empty while the key is the vendor's current one.
    Column("expires_at", Stamp),
)

# How many hits a counter has let through; its row is what concurrent hits wait for.
rate_windows = Table(
    "rate_windows",
    metadata,
    Column("key", CText, primary_key=True),
    Column("hits", BigInteger, nullable=False),
    Column("last_hit", Moment, nullable=False),
    prefixes=["UNLOGGED"],
)

# A ring of as many slots as the limit has hits: the next slot is free when what stands in it left the window.
rate_hits = Table(
    "rate_hits",
    metadata,
    Column("key", CText, primary_key=True),
    Column("slot", Integer, primary_key=True),
    Column("hit_at", Moment, nullable=False),
    prefixes=["UNLOGGED"],
)

usage = Table(
    "usage",
    metadata,
    Column("vendor_id", Integer, primary_key=True),
    Column("day", Date, primary_key=True),
    Column("endpoint", CText, primary_key=True),
    # 2xx, 4xx, 5xx
    Column("status_class", CText, primary_key=True),
    Column("requests", BigInteger, nullable=False),
    Column("records", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
)

# Who was shown data, when, and how much of it; never whose. It outlives the vendor's row.
audit = Table(
    "audit",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("at", Stamp, nullable=False),
    Column("vendor_id", Integer, nullable=False),
    # An OAuth client's id, or the readable beginning of an API key.
    Column("caller", CText, nullable=False),
    Column("method", CText, nullable=False),
    # The path as it is documented: ids are left out.
    Column("path", CText, nullable=False),
    # The filter, or the body's keys, with every value masked.
    Column("filter", CText),
    Column("records", Integer, nullable=False),
    Column("request_id", CText, nullable=False),
    Index(None, "vendor_id", "at"),
    Index(None, "at"),
)

# What a list of grants opens, for as long as the roster stays as it is. Functions of `db/sql` alone read it
# and write it; what is lost in a crash is worked out again.
sights = Table(
    "sights",
    metadata,
    # A hash of the granted districts and schools.
    Column("key", CText, primary_key=True),
    # The roster that the orgs are of; of any other they do not count.
    Column("revision", BigInteger, nullable=False),
    # Lists of ids, as the settings that row-level security reads have them.
    Column("granted_orgs", CText, nullable=False),
    Column("shown_orgs", CText, nullable=False),
    # A hash of both.
    Column("hash", CText, nullable=False),
    # Whether every user and every record of demographics is open: to who may see guardians, and to who may not.
    Column("everyone", Boolean, nullable=False),
    Column("everyone_but_guardians", Boolean, nullable=False),
    prefixes=["UNLOGGED"],
)
