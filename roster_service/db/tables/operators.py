"""The tables of operators, of their sessions in the console, and of the change log."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    Table,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, UUID

from roster_service.db.tables.base import CText, Stamp, metadata

operators = Table(
    "operators",
    metadata,
    Column("id", Integer, Identity(), primary_key=True),
    Column("email", CText, nullable=False, unique=True),
    Column("name", CText, nullable=False),
    Column("role", CText, nullable=False),
    Column("enabled", Boolean, nullable=False, server_default=text("true")),
    # argon2id; NULL: no login is possible.
    Column("password_hash", CText),
    # The random part of the link with which the operator may set a password; NULL once it is used.
    Column("link", UUID),
    Column("created_at", Stamp, nullable=False, server_default=text("now()")),
    # The key of the operator's one-time codes, sealed with the service's secret key; NULL: a login needs none.
    Column("code_key_sealed", LargeBinary),
    # The time step of the code that was used last: it and those before do not count again.
    Column("code_step", BigInteger),
    # The operator's account in the directory (OpenID Connect), since the first login with it.
    Column("directory_subject", CText),
    CheckConstraint("role IN ('viewer', 'editor', 'owner')", name="role"),
)

# A row for each session in the console. `used_at` is at most a minute older than the last request.
operator_sessions = Table(
    "operator_sessions",
    metadata,
    Column("id", Integer, Identity(), primary_key=True),
    Column("operator_id", ForeignKey("operators.id", ondelete="CASCADE"), nullable=False, index=True),
    # SHA-256 of the token in the cookie, which has 256 random bits.
    Column("token_hash", LargeBinary, nullable=False, unique=True),
    Column("created_at", Stamp, nullable=False, server_default=text("now()")),
    Column("used_at", Stamp, nullable=False, server_default=text("now()")),
    # The network address and the browser that the login came from.
    Column("address", CText),
    Column("browser", CText),
)

# The change log: a row for each change by a command. It has no foreign key, so that its rows outlive their subjects.
changes = Table(
    "changes",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("at", Stamp, nullable=False, server_default=text("now()")),
    # `operator` and an e-mail, or `system user` and `user@host`.
    Column("actor_kind", CText, nullable=False),
    Column("actor", CText, nullable=False),
    Column("verb", CText, nullable=False),
    Column("kind", CText, nullable=False),
    Column("subject", CText, nullable=False),
    # The e-mail of the vendor and the name of the feed that the subject is or belongs to.
    Column("vendor", CText),
    Column("feed", CText),
    # The values that the change replaced, and those that it made; NULL for a subject that was or is not there.
    Column("before", JSONB(none_as_null=True)),
    Column("after", JSONB(none_as_null=True)),
    Column("reason", CText),
    Index(None, "at"),
)
