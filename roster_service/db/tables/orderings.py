"""The tables of orderings, which are the ids of a collection in their order, for one set of visible orgs and one
revision; and of the pulls that read them page by page.

They are logged, so that pulls go on after a crash or a failover, and that a hot standby can read orderings. That takes
no measurable time (docs/scaling.md).
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Identity, Integer, LargeBinary, Table, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import TIMESTAMP

from roster_service.db.tables.base import CText, CTexts, Stamp, metadata

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
    # The state of the roster at the first page.
    Column("revision", BigInteger, primary_key=True, autoincrement=False),
    Column("as_of", Stamp, nullable=False),
    Column("deletions_since", Stamp, nullable=False),
    # The last time at which the caller began this pull: of several, a request without a revision means the newest.
    Column("begun_at", TIMESTAMP(timezone=True), nullable=False),
    # When it ends, unless the caller asks for another page before.
    Column("ends_at", TIMESTAMP(timezone=True), nullable=False),
)
