"""The tables behind access: API keys, throttle counters, usage, the access log, and which orgs are visible.

The counters are UNLOGGED: they change with every request, and after a crash nobody misses them.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Date, ForeignKey, Identity, Index, Integer, LargeBinary, Table, text
from sqlalchemy.dialects.postgresql import TIMESTAMP, UUID

from roster_service.db.tables.roster import CText, Stamp, metadata

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

# Which orgs each vendor sees, by its grants: `refresh_visible_orgs` writes the rows, whenever grants change and
# whenever a sync has changed orgs. Both layers of visibility read them. The rows of vendor 0 open every org: records
# are rendered with them.
visible_orgs = Table(
    "visible_orgs",
    metadata,
    Column("vendor_id", Integer, primary_key=True),
    Column("org_id", CText, primary_key=True),
    # The feed that brings the org: academic sessions have no org of their own, and are visible by their feed.
    Column("feed_id", Integer, nullable=False),
    # Whether the people, classes and enrollments of the org are visible too.
    Column("granted", Boolean, nullable=False),
    # Whether the org is a district that is granted with all its orgs.
    Column("whole_district", Boolean, nullable=False),
    # The vendor's `visibility_key`: row-level security shows the rows to who has it, and to nobody else.
    Column("key", UUID, nullable=False),
    Index(None, "key", "org_id"),
    Index(None, "key", "feed_id"),
    # Every rendered record asks for these few rows: without an index of their own, all orgs of the vendor are read.
    Index("ix_visible_orgs_whole_district", "key", "org_id", postgresql_where=text("whole_district")),
)
