"""The tables that requests read and write: what a vendor sees, rates, logs, orderings and pulls.

The throttle counters are UNLOGGED, because they change with every request and may be lost in a crash.

`audit`, `audit_people` and `audit_days` have no foreign key. No role that workers log in as has a right to the last
two.

A whole collection has an ordering for each feed, so that a sync of one feed leaves those of the others; a filtered or
sorted collection has one for all feeds together. The tables are logged, so that pulls go on after a crash or a
failover, and that a hot standby can read orderings. That takes no measurable time (docs/scaling.md).
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, TIMESTAMP, UUID

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

# No window is longer than a day, so a counter without a hit for so many days can be deleted.
RATE_DAYS = 2
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

# Counters of refused requests (4xx), and of answers whose filter found nothing (200), by hour and cause. They have no
# foreign key, as `usage`. What bounds their number is what the service knows: its callers, causes and paths; the two
# lists are bounded by the writer.
refused_requests = sa.Table(
    "refused_requests",
    metadata,
    # NOBODY: the request names no caller that the service knows.
    sa.Column("vendor_id", sa.Integer, primary_key=True),
    # Its beginning.
    sa.Column("hour", Stamp, primary_key=True),
    # An OAuth client's id, or the prefix of an API key; UNKNOWN with NOBODY.
    sa.Column("caller", CText, primary_key=True),
    sa.Column("status", sa.Integer, primary_key=True),
    # The text of a `Problem`, or NOTHING_FOUND.
    sa.Column("cause", CText, primary_key=True),
    # The method, and the path as the documentation writes it, without ids.
    sa.Column("endpoint", CText, primary_key=True),
    sa.Column("requests", sa.BigInteger, nullable=False),
    sa.Column("first_at", Stamp, nullable=False),
    sa.Column("first_request_id", CText, nullable=False),
    sa.Column("last_at", Stamp, nullable=False),
    sa.Column("last_request_id", CText, nullable=False),
    # The network addresses that they came from, that of the last one first.
    sa.Column("addresses", CTexts, nullable=False),
    # The fields that filters, sorts and selections named: only names of the wire format.
    sa.Column("fields", CTexts, nullable=False),
)
# The days for which they are kept.
REFUSED_DAYS = 30
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
    # The network address that the request came from; NULL if it has none.
    sa.Column("address", CText),
    # The scopes of the token, or the permission flags of the vendor.
    sa.Column("scope", CText),
    # The districts that the vendor's grants opened, whole or by single schools; NULL if the grants changed during
    # the request.
    sa.Column("districts", CTexts),
    # The hashes of the people whose records these are, one after the other (`access_log/entries.py`).
    sa.Column("people", sa.LargeBinary, nullable=False),
    # The parts of people that the response had (`roster/person_parts.py`).
    sa.Column("parts", sa.Integer, nullable=False),
    # A worker may write a row twice, if it crashes.
    sa.Column("entry_id", UUID, unique=True),
    sa.Index(None, "vendor_id", "at"),
    sa.Index(None, "at"),
    # The search of the console.
    sa.Index(None, "request_id"),
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
    # The identifier of an org that is a district itself.
    sa.Column("district_identifier", CText),
    # Whether a grant with or without rules opens the org; then it may be named as a school.
    sa.Column("shared", sa.Boolean, nullable=False),
    # Whether only grants with rules make the org visible: then it lists no courses.
    sa.Column("narrowed", sa.Boolean, nullable=False),
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

# The groups of each vendor: its grants with rules. `refresh_visible_orgs` writes these rows too.
visible_groups = sa.Table(
    "visible_groups",
    metadata,
    sa.Column("vendor_id", sa.ForeignKey("vendors.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("group_id", sa.Integer, primary_key=True, autoincrement=False),
    # As in visible_orgs.
    sa.Column("key", UUID, nullable=False),
)

# What the rules of a grant open (feeds/sharing_groups.py writes the rows).
group_members = sa.Table(
    "group_members",
    metadata,
    sa.Column("group_id", sa.ForeignKey("vendor_grants.id", ondelete="CASCADE"), primary_key=True),
    # The name of the record's table. Demographics are open with their user.
    sa.Column("type", CText, primary_key=True),
    sa.Column("sourced_id", CText, primary_key=True),
    # Of a user, a role and its org, which the group opens; else "".
    sa.Column("org_id", CText, primary_key=True, server_default=sa.text("''")),
    sa.Column("role", CText, primary_key=True, server_default=sa.text("''")),
    # When it came into the group, or when what it shows through the group last changed: a stamp for those who see it by
    # the group alone.
    sa.Column("since", Stamp, nullable=False),
    sa.Index(None, "group_id", "since"),
)

# The people who are kept from a vendor, as by a restraining order, whatever its grants open. A row outlives the record
# of the person, which may come back. Both layers of visibility read it.
kept_people = sa.Table(
    "kept_people",
    metadata,
    sa.Column("vendor_id", sa.ForeignKey("vendors.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("user_id", CText, primary_key=True),
    # The stamp of the departures with which the vendor lost the person.
    sa.Column("since", Stamp, primary_key=True),
    # The stamp with which the person came back; NULL: the person is kept. The purge deletes what has ended.
    sa.Column("until", Stamp),
    # The users who showed the vendor the person as an agent when the person was kept, and those who do since the
    # return: their records have these stamps, too.
    sa.Column("named_by", CTexts, nullable=False, server_default=sa.text("'{}'")),
    # As in visible_orgs.
    sa.Column("key", UUID, nullable=False),
    sa.Index(None, "key", "user_id"),
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
    # The salted hash of the visible orgs of the feed, the groups and the kept people. Vendors with the same hash see
    # the same records of it.
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


# The bytes of a person's hash, 48 bits, in `audit` and here. A question about one person also finds rows of another one
# with the same hash: among ten million people there is such a person with a probability of 4e-8.
HASH_BYTES = 6

# The number of each person of a day (`number_people`). A number is never given again.
audit_people = sa.Table(
    "audit_people",
    metadata,
    sa.Column("number", sa.Integer, sa.Identity(), primary_key=True),
    sa.Column("hash", sa.LargeBinary, nullable=False, unique=True),
    # A row of a later day than LAST_DAY_STEP days after it does not have the number.
    sa.Column("last_day", sa.Date, nullable=False),
)
LAST_DAY_STEP = 7

# The responses of a vendor on a day in UTC that have the first columns in common, those of DAY_KEY.
DAY_KEY = ("caller", "method", "path", "filter", "address", "scope", "districts", "hash_check")
audit_days = sa.Table(
    "audit_days",
    metadata,
    sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
    sa.Column("vendor_id", sa.Integer, nullable=False),
    # As in `audit`.
    sa.Column("caller", CText, nullable=False),
    sa.Column("method", CText, nullable=False),
    sa.Column("path", CText, nullable=False),
    sa.Column("filter", CText),
    sa.Column("address", CText),
    sa.Column("scope", CText),
    sa.Column("districts", CTexts),
    # The beginning of `audit.people`: with which key the hashes were made; empty: the rows have no people.
    sa.Column("hash_check", sa.LargeBinary, nullable=False),
    # The first and the last response.
    sa.Column("at", Stamp, nullable=False),
    sa.Column("last_at", Stamp, nullable=False),
    sa.Column("request_id", CText, nullable=False),
    sa.Column("last_request_id", CText, nullable=False),
    # How many responses, and the sum of their records.
    sa.Column("answers", sa.Integer, nullable=False),
    sa.Column("records", sa.BigInteger, nullable=False),
    # The parts of people that the responses had together.
    sa.Column("parts", sa.Integer, nullable=False),
    # The `entry_id` of each response, one after the other: one that is moved to `audit` again is left out.
    sa.Column("entries", sa.LargeBinary, nullable=False),
    # The people, in the shorter of two forms; the other one is NULL. `people`: their numbers. `people_bits`: the bit of
    # each number, which `get_bit` reads. Its storage is EXTERNAL, so that PostgreSQL reads the part that has a number.
    sa.Column("people", ARRAY(sa.Integer)),
    sa.Column("people_bits", sa.LargeBinary),
    # How many people all rows of the vendor's day have together.
    sa.Column("people_of_day", sa.Integer, nullable=False),
    sa.Index(None, "vendor_id", "at"),
    sa.Index(None, "at"),
)

# The view of the rows of both kinds. `by`: `page` for a row of `audit`, `day` for one of `audit_days`; `hashes`:
# `audit.people`, where `people` and `people_bits` are NULL.
disclosures = sa.table(
    "disclosures",
    *(sa.column(column.name, column.type) for column in audit_days.c if column.name != "people_of_day"),
    sa.column("by", sa.Text),
    sa.column("hashes", sa.LargeBinary),
)


orderings = sa.Table(
    "orderings",
    metadata,
    sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
    # SHA-256 of the query: path, filter, sort and content rights.
    sa.Column("query", sa.LargeBinary, nullable=False),
    # A feed, or WHOLE; then the hash and the revision of its row in visible_feeds. With the hash: whether the caller
    # sees guardians, and its floor, where that hides departures. Callers with the same text share orderings.
    sa.Column("feed_id", sa.Integer, nullable=False),
    sa.Column("visible_set", CText, nullable=False),
    sa.Column("revision", sa.BigInteger, nullable=False),
    # The vendor whose request made it: half of the bound on all orderings applies to each vendor.
    sa.Column("vendor_id", sa.Integer, nullable=False),
    sa.Column("total", sa.BigInteger, nullable=False),
    # The size of its ids; NULL: they were only counted, and are not stored.
    sa.Column("bytes", sa.BigInteger),
    sa.Column("made_at", TIMESTAMP(timezone=True), nullable=False, server_default=sa.text("now()")),
    sa.UniqueConstraint("query", "feed_id", "visible_set", "revision"),
)

# All chunks of an ordering have the same number of ids, except the last one.
ordering_chunks = sa.Table(
    "ordering_chunks",
    metadata,
    sa.Column("ordering_id", sa.BigInteger, primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("ids", CTexts, nullable=False),
)

# A pull: the requests of one caller for the pages of a collection, all in the ordering of one view and one revision.
pulls = sa.Table(
    "pulls",
    metadata,
    # The id of an OAuth client, or the prefix of an API key.
    sa.Column("caller", CText, primary_key=True),
    # SHA-256 of what the caller asks for: path, filter and sort, without its rights, so that a page after a change of
    # rights finds the pull of before.
    sa.Column("asked", sa.LargeBinary, primary_key=True),
    # The state of the roster at the first page, as the caller saw it.
    sa.Column("revision", sa.BigInteger, primary_key=True, autoincrement=False),
    # What the caller saw at the first page (`name_view`): a page of another view is refused.
    sa.Column("view", CText, primary_key=True),
    sa.Column("as_of", Stamp, nullable=False),
    sa.Column("deletions_since", Stamp, nullable=False),
    # The orderings that it reads: their query, their feeds, and the visible set and the revision of each.
    sa.Column("query", sa.LargeBinary, nullable=False),
    sa.Column("feed_ids", ARRAY(sa.Integer), nullable=False),
    sa.Column("visible_sets", CTexts, nullable=False),
    sa.Column("feed_revisions", ARRAY(sa.BigInteger), nullable=False),
    # The last time at which the caller began this pull: of several, a request without a revision means the newest.
    sa.Column("begun_at", TIMESTAMP(timezone=True), nullable=False),
    # When it ends, unless the caller asks for another page before.
    sa.Column("ends_at", TIMESTAMP(timezone=True), nullable=False),
)
