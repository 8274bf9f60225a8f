"""The tables of operators, of their sessions in the console, and of the change log."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB, UUID

from roster_service.db.tables.base import CText, Stamp, metadata

operators = sa.Table(
    "operators",
    metadata,
    sa.Column("id", sa.Integer, sa.Identity(), primary_key=True),
    sa.Column("email", CText, nullable=False, unique=True),
    sa.Column("name", CText, nullable=False),
    sa.Column("role", CText, nullable=False),
    sa.Column("enabled", sa.Boolean, nullable=False, server_default=sa.text("true")),
    # argon2id; NULL: no login is possible.
    sa.Column("password_hash", CText),
    # The random part of the link with which the operator may set a password; NULL once it is used.
    sa.Column("link", UUID),
    sa.Column("created_at", Stamp, nullable=False, server_default=sa.text("now()")),
    # The key of the operator's one-time codes, sealed with the service's secret key; NULL: a login needs none.
    sa.Column("code_key_sealed", sa.LargeBinary),
    # The time step of the code that was used last: it and those before do not count again.
    sa.Column("code_step", sa.BigInteger),
    # The operator's account in the directory (OpenID Connect), since the first login with it.
    sa.Column("directory_subject", CText),
    sa.CheckConstraint("role IN ('viewer', 'editor', 'owner')", name="role"),
)

# A row for each session in the console. `used_at` is at most a minute older than the last request.
operator_sessions = sa.Table(
    "operator_sessions",
    metadata,
    sa.Column("id", sa.Integer, sa.Identity(), primary_key=True),
    sa.Column("operator_id", sa.ForeignKey("operators.id", ondelete="CASCADE"), nullable=False, index=True),
    # SHA-256 of the token in the cookie, which has 256 random bits.
    sa.Column("token_hash", sa.LargeBinary, nullable=False, unique=True),
    sa.Column("created_at", Stamp, nullable=False, server_default=sa.text("now()")),
    sa.Column("used_at", Stamp, nullable=False, server_default=sa.text("now()")),
    # The network address and the browser that the login came from.
    sa.Column("address", CText),
    sa.Column("browser", CText),
)

# The change log: a row for each change by a command. It has no foreign key, so that its rows outlive their subjects.
changes = sa.Table(
    "changes",
    metadata,
    sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
    sa.Column("at", Stamp, nullable=False, server_default=sa.text("now()")),
    # `operator` and an e-mail, or `system user` and `user@host`.
    sa.Column("actor_kind", CText, nullable=False),
    sa.Column("actor", CText, nullable=False),
    sa.Column("verb", CText, nullable=False),
    sa.Column("kind", CText, nullable=False),
    sa.Column("subject", CText, nullable=False),
    # The e-mail of the vendor and the name of the feed that the subject is or belongs to.
    sa.Column("vendor", CText),
    sa.Column("feed", CText),
    # The values that the change replaced, and those that it made; NULL for a subject that was or is not there.
    sa.Column("before", JSONB(none_as_null=True)),
    sa.Column("after", JSONB(none_as_null=True)),
    sa.Column("reason", CText),
    sa.Index(None, "at"),
)
