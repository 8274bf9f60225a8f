"""The tables of accounts: vendors, their grants and OAuth clients, and the keys that sign tokens.

They are small, and have foreign keys.
"""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Identity,
    Integer,
    LargeBinary,
    Table,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, UUID

from roster_service.db.tables.base import CText, CTexts, Stamp, metadata

vendors = Table(
    "vendors",
    metadata,
    Column("id", Integer, Identity(), primary_key=True),
    Column("name", CText, nullable=False),
    Column("email", CText, nullable=False, unique=True),
    Column("enabled", Boolean, nullable=False, server_default=text("true")),
    # Tokens carry it. A change of the grants adds one, which ends all older tokens; so does disabling the vendor.
    Column("grant_version", Integer, nullable=False, server_default=text("1")),
    # A random key for each version of the grants. Access tokens carry it, and row-level security compares it.
    Column("visibility_key", UUID, nullable=False, server_default=text("gen_random_uuid()")),
    Column("created_at", Stamp, nullable=False, server_default=text("now()")),
    # argon2id; NULL: no login is possible.
    Column("password_hash", CText),
    # The permission flags: the parts of a student record that `include` may request.
    Column("flags", CTexts, nullable=False, server_default=text("'{}'")),
    # The vendor's own limits on the vendor interface; NULL: the default.
    Column("requests_per_second", Integer),
    Column("burst", Integer),
    Column("requests_per_day", Integer),
    # The same on the rostering interface; the last one: how many requests may run at the same time.
    Column("rostering_per_second", Integer),
    Column("rostering_burst", Integer),
    Column("rostering_at_once", Integer),
    # The words of the fields that the service withholds from the vendor (roster_service/roster/withheld.py); NULL: the
    # default.
    Column("withheld", CTexts),
    # The instant of the last change of what the vendor may see. A copy of before cannot be kept by deltas.
    Column("floor", Stamp, nullable=False, server_default=text("'epoch'")),
)

# A table of one row: what applies to the vendors that have nothing of their own.
vendor_defaults = Table(
    "vendor_defaults",
    metadata,
    Column("singleton", Boolean, primary_key=True, server_default=text("true")),
    Column("withheld", CTexts, nullable=False, server_default=text("'{}'")),
    CheckConstraint("singleton", name="singleton"),
)

# A row without a school grants the whole district; one with a school grants that school alone.
vendor_grants = Table(
    "vendor_grants",
    metadata,
    Column("id", Integer, Identity(), primary_key=True),
    Column("vendor_id", ForeignKey("vendors.id", ondelete="CASCADE"), nullable=False),
    Column("district_id", CText, nullable=False),
    Column("school_id", CText),
    UniqueConstraint("vendor_id", "district_id", "school_id", postgresql_nulls_not_distinct=True),
)

oauth_clients = Table(
    "oauth_clients",
    metadata,
    Column("client_id", CText, primary_key=True),
    Column("vendor_id", ForeignKey("vendors.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("name", CText, nullable=False),
    # SHA-256 of 256 random bits.
    Column("secret_hash", LargeBinary, nullable=False),
    # The hash of the previous secret, which is valid until `previous_secret_ends_at`.
    Column("previous_secret_hash", LargeBinary),
    Column("previous_secret_ends_at", Stamp),
    # NULL: the secret has no end.
    Column("secret_expires_at", Stamp),
    # Of a client that signs requests (OAuth 1.0a): what its secrets are derived from, with the service's secret key.
    Column("secret_salt", LargeBinary),
    Column("previous_secret_salt", LargeBinary),
    Column("scopes", CTexts, nullable=False),
    Column("enabled", Boolean, nullable=False, server_default=text("true")),
    Column("version", Integer, nullable=False, server_default=text("1")),
    Column("created_at", Stamp, nullable=False, server_default=text("now()")),
    # As that of the vendor, for the scopes of the client.
    Column("floor", Stamp, nullable=False, server_default=text("'epoch'")),
    # The part of the client in `X-Roster-As-Of`: its floor, as soon as no run is under way with an older stamp.
    Column("as_of", Stamp, nullable=False, server_default=text("'epoch'")),
)

signing_keys = Table(
    "signing_keys",
    metadata,
    Column("key_id", CText, primary_key=True),
    Column("public_jwk", JSONB, nullable=False),
    # The private JWK, sealed with the service's secret key.
    Column("private_sealed", LargeBinary, nullable=False),
    Column("created_at", Stamp, nullable=False, server_default=text("now()")),
    # The instant from which its signatures are not valid any more. A key with such an instant signs no new tokens.
    Column("retired_at", Stamp),
)
