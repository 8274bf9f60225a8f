"""The tables of rendered records. A rendered record is the JSON text of one record, for callers with grants of all its
required orgs. A rendition is all rendered records of one resource, version and set of content rights. Each feed has its
part of a rendition, so loads of different feeds write different rows.

Both tables are logged, so that a hot standby, and after a crash or a failover the primary, has the texts. That takes no
measurable time (docs/scaling.md).
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, Table

from roster_service.db.tables.base import CText, CTexts, Stamp, metadata

renditions = Table(
    "renditions",
    metadata,
    # The hash of the expressions that render its records.
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("feed_id", Integer, primary_key=True, autoincrement=False),
    # The newest stamp of the feed for which the part was last refreshed.
    Column("as_of", Stamp, nullable=False),
    # The hash of the data of the feed that its records depend on and whose changes do not show in their stamps.
    Column("dependency_hash", CText, nullable=False),
    # False: it did not fit into the bound, so requests make the texts of its records themselves.
    Column("is_kept", Boolean, nullable=False),
    Column("bytes", BigInteger, nullable=False),
)

rendered_records = Table(
    "rendered_records",
    metadata,
    Column("rendition_id", BigInteger, primary_key=True, autoincrement=False),
    Column("sourced_id", CText, primary_key=True),
    Column("feed_id", Integer, nullable=False),
    # The orgs that must all be granted to a caller so that the text is right for it.
    Column("required_orgs", CTexts, nullable=False),
    # The district of all of them; NULL if they are not in one district.
    Column("district_id", CText),
    # Whether the caller must also have the right to see guardians.
    Column("requires_guardians", Boolean, nullable=False),
    # The JSON text. In place of the root address, its refs have a placeholder.
    Column("body", CText, nullable=False),
    # The person whose record it is; NULL if the record has the id of the person, or belongs to none.
    Column("person_id", CText),
    Index(None, "feed_id", "rendition_id"),
)
