"""The table of people whom the roster must not have."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, LargeBinary, Table, text

from roster_service.db.tables.base import CText, Stamp, metadata

# A row for each person whom the sync leaves out of every export.
exclusions = Table(
    "exclusions",
    metadata,
    # HMAC-SHA256 of the sourcedId, with a key that follows from the service's secret key.
    Column("id_hash", LargeBinary, primary_key=True),
    # roster_service/feeds/exclusions.py
    Column("kind", CText, nullable=False),
    # The hash of nothing with the same key: another key would match nobody.
    Column("key_check", LargeBinary, nullable=False),
    # Of a hidden person, so that operators can list them; NULL for an erased one.
    Column("sourced_id", CText),
    Column("at", Stamp, nullable=False, server_default=text("now()")),
    CheckConstraint("kind IN ('erased', 'hidden')", name="kind"),
    CheckConstraint("kind = 'hidden' OR sourced_id IS NULL", name="erased_id"),
)
