"""The tables of access: API keys, throttle counters, nonces, usage counters, refused requests, last uses, access log,
visible orgs.

The throttle counters are UNLOGGED, because they change with every request and may be lost in a crash.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import TIMESTAMP, UUID

from roster_service.db.tables.base import CText, CTexts, Stamp, metadata

# With microseconds: two hits of a counter may be less than a millisecond apart.
Moment = TIMESTAMP(timezone=True)

api_keys = sa.Table(
    "api_keys",
    metadata,
    # SHA-256 of the whole key, which has 256 random bits.
    sa.Column("key_hash", sa.LargeBinary, primary_key=True),
    sa.Column("vendor_id", sa.ForeignKey("vendors.id", ondelete="CASCADE"), nullable=False, index=True),
    # The readable prefix, by which people name a key.
    sa.Column("prefix", CText, nullable=False),
    sa.Column("created_at", Stamp, nullable=False, server_default=sa.text("now()")),
    # NULL: the key has no end, until it is replaced.
    sa.Column("expires_at", Stamp),
)

# A row for each counter: the number of hits that passed. Concurrent hits wait for the lock of this row.
rate_windows = sa.Table(
    "rate_windows",
    metadata,
    sa.Column("key", CText, primary_key=True),
    sa.Column("hits", sa.BigInteger, nullable=False),
    sa.Column("last_hit", Moment, nullable=False),
    prefixes=["UNLOGGED"],
)

# A ring buffer with as many slots as the limit has hits: the next hit may pass when the hit in its slot has left the
# window.
rate_hits = sa.Table(
    "rate_hits",
    metadata,
    sa.Column("key", CText, primary_key=True),
    sa.Column("slot", sa.Integer, primary_key=True),
    sa.Column("hit_at", Moment, nullable=False),
    prefixes=["UNLOGGED"],
)

# The nonces of signed requests (OAuth 1.0a). A crash of the database keeps them, so that it opens no way for a replay.
oauth1_nonces = sa.Table(
    "oauth1_nonces",
    metadata,
    # Seconds since 1970. The first column, because old nonces are deleted by it.
    sa.Column("stamp", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("client_id", CText, primary_key=True),
    sa.Column("nonce", CText, primary_key=True),
)

usage = sa.Table(
    "usage",
    metadata,
    sa.Column("vendor_id", sa.Integer, primary_key=True),
    sa.Column("day", sa.Date, primary_key=True),
    sa.Column("endpoint", CText, primary_key=True),
    # 2xx, 4xx, 5xx
    sa.Column("status_class", CText, primary_key=True),
    sa.Column("requests", sa.BigInteger, nullable=False),
    sa.Column("records", sa.BigInteger, nullable=False),
    sa.Column("bytes", sa.BigInteger, nullable=False),
)

# The usage counters of refused requests (4xx), by cause. They have no foreign key, as `usage`.
refused_requests = sa.Table(
    "refused_requests",
    metadata,
    # NOBODY: the request names no caller that the service knows.
    sa.Column("vendor_id", sa.Integer, primary_key=True),
    sa.Column("day", sa.Date, primary_key=True),
    # An OAuth client's id, or the prefix of an API key; UNKNOWN with NOBODY.
    sa.Column("caller", CText, primary_key=True),
    sa.Column("status", sa.Integer, primary_key=True),
    # The text of a `Problem`.
    sa.Column("cause", CText, primary_key=True),
    sa.Column("requests", sa.BigInteger, nullable=False),
    sa.Column("last_at", Stamp, nullable=False),
    # The network address that the last one came from.
    sa.Column("address", CText),
)
NOBODY = 0
UNKNOWN = "unknown"

# The last request with an API key, or by an OAuth client. It has no foreign key: a worker may store the last request of
# a vendor that was just removed.
last_uses = sa.Table(
    "last_uses",
    metadata,
    sa.Column("vendor_id", sa.Integer, primary_key=True, autoincrement=False),
    # An OAuth client's id, or the prefix of an API key.
    sa.Column("caller", CText, primary_key=True),
    sa.Column("used_at", Stamp, nullable=False),
    # The network address that the request came from.
    sa.Column("address", CText),
)

# The access log: a row for each response with records, without the ids of records; people are there as keyed hashes. It
# has no foreign key, so that its rows outlive the vendor.
audit = sa.Table(
    "audit",
    metadata,
    sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
    sa.Column("at", Stamp, nullable=False),
    sa.Column("vendor_id", sa.Integer, nullable=False),
    # An OAuth client's id, or the prefix of an API key.
    sa.Column("caller", CText, nullable=False),
    sa.Column("method", CText, nullable=False),
    # The path as the documentation writes it, without ids.
    sa.Column("path", CText, nullable=False),
    # The filter, or the keys of the body, with every value masked.
    sa.Column("filter", CText),
    sa.Column("records", sa.Integer, nullable=False),
    sa.Column("request_id", CText, nullable=False),
    # NULL in the next five: the row is older than the column.
    # The network address that the request came from; NULL also if it has none.
    sa.Column("address", CText),
    # The scopes of the token, or the permission flags of the vendor.
    sa.Column("scope", CText),
    # The districts that the vendor's grants opened, whole or by single schools; NULL also if the grants changed during
    # the request.
    sa.Column("districts", CTexts),
    # The hashes of the people whose records these are, one after the other (`auth/access_log/people.py`).
    sa.Column("people", sa.LargeBinary),
    # A worker may write a row twice, if it crashes.
    sa.Column("entry_id", UUID, unique=True),
    sa.Index(None, "vendor_id", "at"),
    sa.Index(None, "at"),
)

# The visible orgs of each vendor. `refresh_visible_orgs` writes the rows when grants change, and in every sync that
# changes orgs. Both layers of visibility read them.
visible_orgs = sa.Table(
    "visible_orgs",
    metadata,
    sa.Column("vendor_id", sa.Integer, primary_key=True),
    sa.Column("org_id", CText, primary_key=True),
    # The feed of the org: academic sessions have no org, and are visible through their feed.
    sa.Column("feed_id", sa.Integer, nullable=False),
    # Whether the people, classes and enrollments of the org are visible too.
    sa.Column("granted", sa.Boolean, nullable=False),
    # Whether the org is a district that is granted with all its orgs.
    sa.Column("whole_district", sa.Boolean, nullable=False),
    # The district of the org.
    sa.Column("district_id", CText),
    # The vendor's `visibility_key`: row-level security shows a row only to a transaction that was admitted with it.
    sa.Column("key", UUID, nullable=False),
    sa.Index(None, "key", "org_id"),
    sa.Index(None, "key", "feed_id"),
    # Whether a vendor sees whole districts is asked with each page that has no ordering yet.
    sa.Index("ix_visible_orgs_whole_district", "key", "org_id", postgresql_where=sa.text("whole_district")),
)

# The visibility labels that the visible orgs of each vendor open. `refresh_visible_orgs` writes these rows too; the
# query filter reads them.
visible_labels = sa.Table(
    "visible_labels",
    metadata,
    sa.Column("vendor_id", sa.ForeignKey("vendors.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("label_id", sa.Integer, primary_key=True, autoincrement=False),
    # Whether it opens its records also to a caller who does not see guardians.
    sa.Column("without_guardians", sa.Boolean, nullable=False),
    # Whether users are visible as students, and as teachers.
    sa.Column("opens_students", sa.Boolean, nullable=False),
    sa.Column("opens_teachers", sa.Boolean, nullable=False),
    # As in visible_orgs.
    sa.Column("key", UUID, nullable=False),
)

# The feeds of a vendor's visible orgs, each with its state; and, as the row of feed WHOLE, all of them together, with
# the state of the roster as the vendor sees it. `refresh_visible_orgs` writes these rows too.
WHOLE = 0
visible_feeds = sa.Table(
    "visible_feeds",
    metadata,
    sa.Column("vendor_id", sa.ForeignKey("vendors.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("feed_id", sa.Integer, primary_key=True, autoincrement=False),
    # As in visible_orgs.
    sa.Column("key", UUID, nullable=False),
    # The salted hash of the visible orgs of the feed. Vendors with the same hash see the same records of it.
    sa.Column("visible_set", CText, nullable=False),
    # As in feeds. In the row of WHOLE, they grow also when the rights of the vendor change.
    sa.Column("revision", sa.BigInteger, nullable=False),
    sa.Column("as_of", Stamp, nullable=False),
    sa.Column("deletions_since", Stamp, nullable=False),
    # The vendor's floor: departures that are not later are hidden from it.
    sa.Column("floor", Stamp, nullable=False, server_default=sa.text("'epoch'")),
    # The first departure of the feed; NULL: it has none. A floor before it hides none, so it tells no orderings apart.
    sa.Column("first_departure", Stamp),
    sa.Index(None, "key", "visible_set"),
)
