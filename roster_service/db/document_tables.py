"""The tables that keep records as JSON texts: a document is the text of one record, as a caller sees it who was granted
all that the text depends on; a shelf is all documents of one view.

Both are UNLOGGED: whatever is lost in a crash is made again.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Identity, Integer, Table
from sqlalchemy.dialects.postgresql import TIMESTAMP

from roster_service.db.tables import CText, CTexts, Stamp, metadata

shelves = Table(
    "shelves",
    metadata,
    Column("id", Integer, Identity(), primary_key=True),
    # The hash of the expressions that its documents are made by.
    Column("key", CText, nullable=False, unique=True),
    # The roster that the documents are of, and its newest stamp; of any other they do not count.
    Column("revision", BigInteger, nullable=False),
    Column("as_of", Stamp, nullable=False),
    # The hash of what documents depend on without a stamp of their own saying so.
    Column("ground", CText, nullable=False),
    # The last record that was looked at; empty: all were.
    Column("reached", CText),
    Column("bytes", BigInteger, nullable=False),
    Column("used_at", TIMESTAMP(timezone=True), nullable=False),
    prefixes=["UNLOGGED"],
)

documents = Table(
    "documents",
    metadata,
    Column("shelf", Integer, primary_key=True),
    Column("sourced_id", CText, primary_key=True),
    # The orgs that must all be granted to a caller for the text to be what the caller would get.
    Column("needs", CTexts, nullable=False),
    # The district that all of them lie in; empty where there is no such one.
    Column("district_id", CText),
    # Whether the right to see guardians is needed too.
    Column("needs_guardians", Boolean, nullable=False),
    # Where refs begin, the root of the addresses is left open.
    Column("body", CText, nullable=False),
    prefixes=["UNLOGGED"],
)
