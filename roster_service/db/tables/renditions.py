"""The tables that keep records as JSON texts: a rendered record is the text of one record, as a caller sees it who was
granted all orgs that the text depends on; a rendition is all rendered records of one resource, version and set of
content rights.

Both are UNLOGGED: whatever is lost in a crash is made live, and rendered again by the next sync.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Identity, Integer, Table

from roster_service.db.tables.roster import CText, CTexts, Stamp, metadata

renditions = Table(
    "renditions",
    metadata,
    Column("id", Integer, Identity(), primary_key=True),
    # The hash of the expressions that its records are rendered by.
    Column("key", CText, nullable=False, unique=True),
    # The newest stamp of the roster that it was last brought up to.
    Column("as_of", Stamp, nullable=False),
    # The hash of what its records depend on without a stamp of their own saying so.
    Column("dependency_hash", CText, nullable=False),
    # False: it was larger than the bound, so its records are made live.
    Column("is_kept", Boolean, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    prefixes=["UNLOGGED"],
)

rendered_records = Table(
    "rendered_records",
    metadata,
    Column("rendition_id", Integer, primary_key=True),
    Column("sourced_id", CText, primary_key=True),
    # The orgs that must all be granted to a caller for the text to be what the caller would get.
    Column("required_orgs", CTexts, nullable=False),
    # The district that all of them lie in; empty where there is no such one.
    Column("district_id", CText),
    # Whether the right to see guardians is needed too.
    Column("requires_guardians", Boolean, nullable=False),
    # Where refs begin, the root of the addresses is left open.
    Column("body", CText, nullable=False),
    prefixes=["UNLOGGED"],
)
