"""The tables of rendered records. A rendered record is the JSON text of one record, for callers with grants of all its
required orgs. A rendition is all rendered records of one resource, version and set of content rights.

Both are UNLOGGED: after a crash, requests make the texts themselves until the next sync renders them again.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Identity, Integer, Table

from roster_service.db.tables.base import CText, CTexts, Stamp, metadata

renditions = Table(
    "renditions",
    metadata,
    Column("id", Integer, Identity(), primary_key=True),
    # The hash of the expressions that render its records.
    Column("key", CText, nullable=False, unique=True),
    # The newest stamp of the roster for which it was last refreshed.
    Column("as_of", Stamp, nullable=False),
    # The hash of the data that its records depend on and whose changes do not show in their stamps.
    Column("dependency_hash", CText, nullable=False),
    # False: it is larger than the bound, so requests make the texts of its records themselves.
    Column("is_kept", Boolean, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    prefixes=["UNLOGGED"],
)

rendered_records = Table(
    "rendered_records",
    metadata,
    Column("rendition_id", Integer, primary_key=True),
    Column("sourced_id", CText, primary_key=True),
    # The orgs that must all be granted to a caller so that the text is right for it.
    Column("required_orgs", CTexts, nullable=False),
    # The district of all of them; NULL if they are not in one district.
    Column("district_id", CText),
    # Whether the caller must also have the right to see guardians.
    Column("requires_guardians", Boolean, nullable=False),
    # The JSON text. In place of the root address, its refs have a placeholder.
    Column("body", CText, nullable=False),
    prefixes=["UNLOGGED"],
)
