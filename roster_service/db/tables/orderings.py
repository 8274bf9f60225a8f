"""The tables of orderings, which are the ids of a collection in their order, for one set of visible orgs and one
revision; and of the pulls that read them page by page.

A whole collection has an ordering for each feed, so that a sync of one feed leaves those of the others; a filtered or
sorted collection has one for all feeds together. The tables are logged, so that pulls go on after a crash or a
failover, and that a hot standby can read orderings. That takes no measurable time (docs/scaling.md)."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, TIMESTAMP

from roster_service.db.tables.base import CText, CTexts, Stamp, metadata

orderings = sa.Table(
    "orderings",
    metadata,
    sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
    # SHA-256 of the query: path, filter, sort and content rights.
    sa.Column("query", sa.LargeBinary, nullable=False),
    # A feed, or WHOLE; then the hash and the revision of its row in visible_feeds, and whether the caller sees
    # guardians. Callers with the same hash share orderings.
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

# A pull: the requests of one caller for the pages of a collection, all in the ordering of one revision.
pulls = sa.Table(
    "pulls",
    metadata,
    # The id of an OAuth client, or the prefix of an API key.
    sa.Column("caller", CText, primary_key=True),
    # As in orderings.
    sa.Column("query", sa.LargeBinary, primary_key=True),
    # The state of the roster at the first page, as the caller saw it.
    sa.Column("revision", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("as_of", Stamp, nullable=False),
    sa.Column("deletions_since", Stamp, nullable=False),
    # The orderings that it reads: their feeds, and the revision of each.
    sa.Column("feed_ids", ARRAY(sa.Integer), nullable=False),
    sa.Column("feed_revisions", ARRAY(sa.BigInteger), nullable=False),
    # The last time at which the caller began this pull: of several, a request without a revision means the newest.
    sa.Column("begun_at", TIMESTAMP(timezone=True), nullable=False),
    # When it ends, unless the caller asks for another page before.
    sa.Column("ends_at", TIMESTAMP(timezone=True), nullable=False),
)
