"""The tables of orderings, which are the ids of a collection in their order, for one set of visible orgs and one
revision; and of the pulls that read them page by page.

A whole collection has an ordering for each feed, so that a sync of one feed leaves those of the others; a filtered or
sorted collection has one for all feeds together. The tables are logged, so that pulls go on after a crash or a
failover, and that a hot standby can read orderings. That takes no measurable time (docs/scaling.md)."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Identity, Integer, LargeBinary, Table, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import ARRAY, TIMESTAMP

from roster_service.db.tables.base import CText, CTexts, Stamp, metadata

orderings = Table(
    "orderings",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    # SHA-256 of the query: path, filter, sort and content rights.
    Column("query", LargeBinary, nullable=False),
    # A feed, or WHOLE; then the hash and the revision of its row in visible_feeds, and whether the caller sees
    # guardians. Callers with the same hash share orderings.
    Column("feed_id", Integer, nullable=False),
    Column("visible_set", CText, nullable=False),
    Column("revision", BigInteger, nullable=False),
    # The vendor whose request made it: half of the bound on all orderings applies to each vendor.
    Column("vendor_id", Integer, nullable=False),
    Column("total", BigInteger, nullable=False),
    # The size of its ids; NULL: they were only counted, and are not stored.
    Column("bytes", BigInteger),
    Column("made_at", TIMESTAMP(timezone=True), nullable=False, server_default=text("now()")),
    UniqueConstraint("query", "feed_id", "visible_set", "revision"),
)

# All chunks of an ordering have the same number of ids, except the last one.
ordering_chunks = Table(
    "ordering_chunks",
    metadata,
    Column("ordering_id", BigInteger, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("ids", CTexts, nullable=False),
)

# A pull: the requests of one caller for the pages of a collection, all in the ordering of one revision.
pulls = Table(
    "pulls",
    metadata,
    # The id of an OAuth client, or the prefix of an API key.
    Column("caller", CText, primary_key=True),
    # As in orderings.
    Column("query", LargeBinary, primary_key=True),
    # The state of the roster at the first page, as the caller saw it.
    Column("revision", BigInteger, primary_key=True, autoincrement=False),
    Column("as_of", Stamp, nullable=False),
    Column("deletions_since", Stamp, nullable=False),
    # The orderings that it reads: their feeds, and the revision of each.
    Column("feed_ids", ARRAY(Integer), nullable=False),
    Column("feed_revisions", ARRAY(BigInteger), nullable=False),
    # The last time at which the caller began this pull: of several, a request without a revision means the newest.
    Column("begun_at", TIMESTAMP(timezone=True), nullable=False),
    # When it ends, unless the caller asks for another page before.
    Column("ends_at", TIMESTAMP(timezone=True), nullable=False),
)
