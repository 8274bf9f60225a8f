"""The tables of access: API keys, throttle counters, nonces, usage counters, refused requests, last uses, access log,
visible orgs.

The throttle counters are UNLOGGED, because they change with every request and may be lost in a crash.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Date, ForeignKey, Identity, Index, Integer, LargeBinary, Table, text
from sqlalchemy.dialects.postgresql import TIMESTAMP, UUID

from roster_service.db.tables.base import CText, CTexts, Stamp, metadata

# With microseconds: two hits of a counter may be less than a millisecond apart.
Moment = TIMESTAMP(timezone=True)

api_keys = Table(
    "api_keys",
    metadata,
    # SHA-256 of the whole key, which has 256 random bits.
    Column("key_hash", LargeBinary, primary_key=True),
    Column("vendor_id", ForeignKey("vendors.id", ondelete="CASCADE"), nullable=False, index=True),
    # The readable prefix, by which people name a key.
    Column("prefix", CText, nullable=False),
    Column("created_at", Stamp, nullable=False, server_default=text("now()")),
    # NULL: the key has no end, until it is replaced.
    Column("expires_at", Stamp),
)

# A row for each counter: the number of hits that passed. Concurrent hits wait for the lock of this row.
rate_windows = Table(
    "rate_windows",
    metadata,
    Column("key", CText, primary_key=True),
    Column("hits", BigInteger, nullable=False),
    Column("last_hit", Moment, nullable=False),
    prefixes=["UNLOGGED"],
)

# A ring buffer with as many slots as the limit has hits: the next hit may pass when the hit in its slot has left the
# window.
rate_hits = Table(
    "rate_hits",
    metadata,
    Column("key", CText, primary_key=True),
    Column("slot", Integer, primary_key=True),
    Column("hit_at", Moment, nullable=False),
    prefixes=["UNLOGGED"],
)

# The nonces of signed requests (OAuth 1.0a). A crash of the database keeps them, so that it opens no way for a replay.
oauth1_nonces = Table(
    "oauth1_nonces",
    metadata,
    # Seconds since 1970. The first column, because old nonces are deleted by it.
    Column("stamp", BigInteger, primary_key=True, autoincrement=False),
    Column("client_id", CText, primary_key=True),
    Column("nonce", CText, primary_key=True),
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

# The usage counters of refused requests (4xx), by cause. They have no foreign key, as `usage`.
refused_requests = Table(
    "refused_requests",
    metadata,
    # NOBODY: the request names no caller that the service knows.
    Column("vendor_id", Integer, primary_key=True),
    Column("day", Date, primary_key=True),
    # An OAuth client's id, or the prefix of an API key; UNKNOWN with NOBODY.
    Column("caller", CText, primary_key=True),
    Column("status", Integer, primary_key=True),
    # The text of a `Problem`.
    Column("cause", CText, primary_key=True),
    Column("requests", BigInteger, nullable=False),
    Column("last_at", Stamp, nullable=False),
    # The network address that the last one came from.
    Column("address", CText),
)
NOBODY = 0
UNKNOWN = "unknown"

# The last request with an API key, or by an OAuth client. It has no foreign key: a worker may store the last request of
# a vendor that was just removed.
last_uses = Table(
    "last_uses",
    metadata,
    Column("vendor_id", Integer, primary_key=True, autoincrement=False),
    # An OAuth client's id, or the prefix of an API key.
    Column("caller", CText, primary_key=True),
    Column("used_at", Stamp, nullable=False),
    # The network address that the request came from.
    Column("address", CText),
)

# The access log: a row for each response with records, without the ids of records; people are there as keyed hashes. It
# has no foreign key, so that its rows outlive the vendor.
audit = Table(
    "audit",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("at", Stamp, nullable=False),
    Column("vendor_id", Integer, nullable=False),
    # An OAuth client's id, or the prefix of an API key.
    Column("caller", CText, nullable=False),
    Column("method", CText, nullable=False),
    # The path as the documentation writes it, without ids.
    Column("path", CText, nullable=False),
    # The filter, or the keys of the body, with every value masked.
    Column("filter", CText),
    Column("records", Integer, nullable=False),
    Column("request_id", CText, nullable=False),
    # NULL in the next five: the row is older than the column.
    # The network address that the request came from; NULL also if it has none.
    Column("address", CText),
    # The scopes of the token, or the permission flags of the vendor.
    Column("scope", CText),
    # The districts that the vendor's grants opened, whole or by single schools; NULL also if the grants changed during
    # the request.
    Column("districts", CTexts),
    # The hashes of the people whose records these are, one after the other (`auth/access_log/people.py`).
    Column("people", LargeBinary),
    # A worker may write a row twice, if it crashes.
    Column("entry_id", UUID, unique=True),
    Index(None, "vendor_id", "at"),
    Index(None, "at"),
)

# The visible orgs of each vendor. `refresh_visible_orgs` writes the rows when grants change, and in every sync that
# changes orgs. Both layers of visibility read them.
visible_orgs = Table(
    "visible_orgs",
    metadata,
    Column("vendor_id", Integer, primary_key=True),
    Column("org_id", CText, primary_key=True),
    # The feed of the org: academic sessions have no org, and are visible through their feed.
    Column("feed_id", Integer, nullable=False),
    # Whether the people, classes and enrollments of the org are visible too.
    Column("granted", Boolean, nullable=False),
    # Whether the org is a district that is granted with all its orgs.
    Column("whole_district", Boolean, nullable=False),
    # The district of the org.
    Column("district_id", CText),
    # The vendor's `visibility_key`: row-level security shows a row only to a transaction that was admitted with it.
    Column("key", UUID, nullable=False),
    Index(None, "key", "org_id"),
    Index(None, "key", "feed_id"),
    # Whether a vendor sees whole districts is asked with each page that has no ordering yet.
    Index("ix_visible_orgs_whole_district", "key", "org_id", postgresql_where=text("whole_district")),
)

# The visibility labels that the visible orgs of each vendor open. `refresh_visible_orgs` writes these rows too; the
# query filter reads them.
visible_labels = Table(
    "visible_labels",
    metadata,
    Column("vendor_id", ForeignKey("vendors.id", ondelete="CASCADE"), primary_key=True),
    Column("label_id", Integer, primary_key=True, autoincrement=False),
    # Whether it opens its records also to a caller who does not see guardians.
    Column("without_guardians", Boolean, nullable=False),
    # Whether users are visible as students, and as teachers.
    Column("opens_students", Boolean, nullable=False),
    Column("opens_teachers", Boolean, nullable=False),
    # As in visible_orgs.
    Column("key", UUID, nullable=False),
)

# The feeds of a vendor's visible orgs, each with its state; and, as the row of feed WHOLE, all of them together, with
# the state of the roster as the vendor sees it. `refresh_visible_orgs` writes these rows too.
WHOLE = 0
visible_feeds = Table(
    "visible_feeds",
    metadata,
    Column("vendor_id", ForeignKey("vendors.id", ondelete="CASCADE"), primary_key=True),
    Column("feed_id", Integer, primary_key=True, autoincrement=False),
    # As in visible_orgs.
    Column("key", UUID, nullable=False),
    # The salted hash of the visible orgs of the feed. Vendors with the same hash see the same records of it.
    Column("visible_set", CText, nullable=False),
    # As in feeds. In the row of WHOLE, they grow also when the rights of the vendor change.
    Column("revision", BigInteger, nullable=False),
    Column("as_of", Stamp, nullable=False),
    Column("deletions_since", Stamp, nullable=False),
    # The vendor's floor: departures that are not later are hidden from it.
    Column("floor", Stamp, nullable=False, server_default=text("'epoch'")),
    # The first departure of the feed; NULL: it has none. A floor before it hides none, so it tells no orderings apart.
    Column("first_departure", Stamp),
    Index(None, "key", "visible_set"),
)
