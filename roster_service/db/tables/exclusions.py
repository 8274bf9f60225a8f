"""The table of people whom the roster must not have."""

from __future__ import annotations

import sqlalchemy as sa

from roster_service.db.tables.base import CText, Stamp, metadata

# A row for each person whom the sync leaves out of every export.
exclusions = sa.Table(
    "exclusions",
    metadata,
    # HMAC-SHA256 of the sourcedId, with a key that follows from the service's secret key.
    sa.Column("id_hash", sa.LargeBinary, primary_key=True),
    # roster_service/feeds/exclusions.py
    sa.Column("kind", CText, nullable=False),
    # The hash of nothing with the same key: another key would match nobody.
    sa.Column("key_check", sa.LargeBinary, nullable=False),
    # Of a hidden person, so that operators can list them; NULL for an erased one.
    sa.Column("sourced_id", CText),
    sa.Column("at", Stamp, nullable=False, server_default=sa.text("now()")),
    sa.CheckConstraint("kind IN ('erased', 'hidden')", name="kind"),
    sa.CheckConstraint("kind = 'hidden' OR sourced_id IS NULL", name="erased_id"),
)
