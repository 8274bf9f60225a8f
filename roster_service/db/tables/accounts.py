"""The tables of vendors, their clients and grants, and of operators.

They are small, and have foreign keys.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB, UUID

from roster_service.db.tables.base import CText, CTexts, Stamp, metadata

vendors = sa.Table(
    "vendors",
    metadata,
    sa.Column("id", sa.Integer, sa.Identity(), primary_key=True),
    sa.Column("name", CText, nullable=False),
    sa.Column("email", CText, nullable=False, unique=True),
    sa.Column("enabled", sa.Boolean, nullable=False, server_default=sa.text("true")),
    # Tokens carry it. A change of the grants adds one, which ends all older tokens; so does disabling the vendor.
    sa.Column("grant_version", sa.Integer, nullable=False, server_default=sa.text("1")),
    # A random key for each version of the grants. Access tokens carry it, and row-level security compares it.
    sa.Column("visibility_key", UUID, nullable=False, server_default=sa.text("gen_random_uuid()")),
    sa.Column("created_at", Stamp, nullable=False, server_default=sa.text("now()")),
    # argon2id; NULL: no login is possible.
    sa.Column("password_hash", CText),
    # The permission flags: the parts of a student record that `include` may request.
    sa.Column("flags", CTexts, nullable=False, server_default=sa.text("'{}'")),
    # The vendor's own limits on the vendor interface; NULL: the default.
    sa.Column("requests_per_second", sa.Integer),
    sa.Column("burst", sa.Integer),
    sa.Column("requests_per_day", sa.Integer),
    # The same on the rostering interface; the last one: how many requests may run at the same time.
    sa.Column("rostering_per_second", sa.Integer),
    sa.Column("rostering_burst", sa.Integer),
    sa.Column("rostering_at_once", sa.Integer),
    # The words of the fields that the service withholds from the vendor (roster_service/roster/withheld.py); NULL: the
    # default.
    sa.Column("withheld", CTexts),
    # The instant of the last change of what the vendor may see. An earlier copy cannot be kept by deltas.
    sa.Column("floor", Stamp, nullable=False, server_default=sa.text("'epoch'")),
    # Whether a grant has rules, or a person is or was kept from it: then statements ask for both.
    # `refresh_visible_orgs` sets it.
    sa.Column("has_rules", sa.Boolean, nullable=False, server_default=sa.text("false")),
)

# A table of one row: what applies to the vendors that have nothing of their own.
vendor_defaults = sa.Table(
    "vendor_defaults",
    metadata,
    sa.Column("singleton", sa.Boolean, primary_key=True, server_default=sa.text("true")),
    sa.Column("withheld", CTexts, nullable=False, server_default=sa.text("'{}'")),
    # Whether a vendor without an agreement gets nothing.
    sa.Column("agreement_required", sa.Boolean, nullable=False, server_default=sa.text("false")),
    # Whether everybody may see which vendors get what.
    sa.Column("published", sa.Boolean, nullable=False, server_default=sa.text("false")),
    sa.CheckConstraint("singleton", name="singleton"),
)

# What everybody may see of the vendors of a district (accounts/transparency.py): the names of vendors and schools, the
# parts of people in words, and what the agreement says. It has no foreign key: the page has it as it was written.
published_vendors = sa.Table(
    "published_vendors",
    metadata,
    sa.Column("district_id", CText, primary_key=True),
    sa.Column("vendor_id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("district", CText, nullable=False),
    sa.Column("body", JSONB, nullable=False),
    # The end of the agreement; NULL: it has none.
    sa.Column("ends_at", Stamp),
)

# The agreement of a vendor: what a paper allows it at most, and from when to when. What the vendor gets is what is
# granted and agreed (`auth/agreed_rights.py`, `agreed_grants`, `find_agreement_refusal`).
agreements = sa.Table(
    "agreements",
    metadata,
    sa.Column("vendor_id", sa.ForeignKey("vendors.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    sa.Column("title", CText, nullable=False),
    sa.Column("purpose", CText, nullable=False),
    # The words of the parts of people that it names (roster_service/roster/person_parts.py), and of what no person is
    # meant by.
    sa.Column("elements", CTexts, nullable=False),
    # What these opened when the agreement was saved: a field, a scope or a flag of a later version is not among them.
    sa.Column("fields", CTexts, nullable=False),
    sa.Column("scopes", CTexts, nullable=False),
    sa.Column("flags", CTexts, nullable=False),
    # The keys of `metadata` that it names.
    sa.Column("metadata_keys", CTexts, nullable=False),
    # The sourcedIds of whole districts, and of single schools.
    sa.Column("districts", CTexts, nullable=False),
    sa.Column("schools", CTexts, nullable=False),
    # It holds from `starts_at`, and no more from `ends_at` on: the ends of days in this zone (IANA name).
    sa.Column("zone", CText, nullable=False),
    sa.Column("starts_at", Stamp, nullable=False),
    sa.Column("ends_at", Stamp, nullable=False),
    # When the service first saw that it had ended: that stays so, whatever the clock says later.
    sa.Column("ended_at", Stamp),
    # The days before its end of which somebody was told last (sync_scripts/engine/agreement_ends.py); NULL: nobody was.
    sa.Column("told_days", sa.Integer),
    # What the paper says besides; blank for nothing.
    *(sa.Column(name, CText, nullable=False) for name in ("contact", "address", "subcontractors", "deletion", "link")),
    sa.CheckConstraint("starts_at < ends_at", name="lasts"),
)

# What a vendor is asked to delete of a person (accounts/deletion_requests.py).
deletion_requests = sa.Table(
    "deletion_requests",
    metadata,
    sa.Column("id", sa.Integer, sa.Identity(), primary_key=True),
    sa.Column("vendor_id", sa.ForeignKey("vendors.id", ondelete="CASCADE"), nullable=False, index=True),
    # The keyed hash of the id; NULL: the person was erased since.
    sa.Column("person", sa.LargeBinary),
    # Days of the time zone of the settings; `answered`: NULL while it is open.
    sa.Column("asked", sa.Date, nullable=False),
    sa.Column("due", sa.Date, nullable=False),
    sa.Column("answered", sa.Date),
    # What the vendor has answered.
    sa.Column("words", CText, nullable=False),
)

# A row without a school grants the whole district; one with a school grants that school alone. A row with `staff` has
# rules: it grants only what the rules open of these orgs, which is a group. A changed rule is a new row, so the id of a
# group never means another rule.
vendor_grants = sa.Table(
    "vendor_grants",
    metadata,
    sa.Column("id", sa.Integer, sa.Identity(), primary_key=True),
    sa.Column("vendor_id", sa.ForeignKey("vendors.id", ondelete="CASCADE"), nullable=False),
    sa.Column("district_id", CText, nullable=False),
    sa.Column("school_id", CText),
    # Filters of users and of classes; NULL: all of them.
    sa.Column("students", CText),
    sa.Column("classes", CText),
    # A word of `Staff`; NULL: the grant has no rules.
    sa.Column("staff", CText),
    # Whether guardians of shared students are shared, too, with those who may see guardians.
    sa.Column("guardians", sa.Boolean, nullable=False, server_default=sa.text("true")),
    sa.UniqueConstraint(
        *("vendor_id", "district_id", "school_id", "students", "classes", "staff", "guardians"),
        name="uq_vendor_grants_rules",
        postgresql_nulls_not_distinct=True,
    ),
)

oauth_clients = sa.Table(
    "oauth_clients",
    metadata,
    sa.Column("client_id", CText, primary_key=True),
    sa.Column("vendor_id", sa.ForeignKey("vendors.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("name", CText, nullable=False),
    # SHA-256 of 256 random bits.
    sa.Column("secret_hash", sa.LargeBinary, nullable=False),
    # The hash of the previous secret, which is valid until `previous_secret_ends_at`.
    sa.Column("previous_secret_hash", sa.LargeBinary),
    sa.Column("previous_secret_ends_at", Stamp),
    # NULL: the secret has no end.
    sa.Column("secret_expires_at", Stamp),
    # Of a client that signs requests (OAuth 1.0a): what its secrets are derived from, with the service's secret key.
    sa.Column("secret_salt", sa.LargeBinary),
    sa.Column("previous_secret_salt", sa.LargeBinary),
    sa.Column("scopes", CTexts, nullable=False),
    sa.Column("enabled", sa.Boolean, nullable=False, server_default=sa.text("true")),
    sa.Column("version", sa.Integer, nullable=False, server_default=sa.text("1")),
    sa.Column("created_at", Stamp, nullable=False, server_default=sa.text("now()")),
    # As that of the vendor, for the scopes of the client.
    sa.Column("floor", Stamp, nullable=False, server_default=sa.text("'epoch'")),
    # The part of the client in `X-Roster-As-Of`: its floor, as soon as no run is under way with an older stamp.
    sa.Column("as_of", Stamp, nullable=False, server_default=sa.text("'epoch'")),
    # The link with which the vendor makes the secret itself: SHA-256 of its random part, its end, and its use.
    sa.Column("link_hash", sa.LargeBinary, unique=True),
    sa.Column("link_ends_at", Stamp),
    sa.Column("link_used_at", Stamp),
    sa.Column("link_used_from", CText),
)

signing_keys = sa.Table(
    "signing_keys",
    metadata,
    sa.Column("key_id", CText, primary_key=True),
    sa.Column("public_jwk", JSONB, nullable=False),
    # The private JWK, sealed with the service's secret key.
    sa.Column("private_sealed", sa.LargeBinary, nullable=False),
    sa.Column("created_at", Stamp, nullable=False, server_default=sa.text("now()")),
    # The instant from which its signatures are not valid any more. A key with such an instant signs no new tokens.
    sa.Column("retired_at", Stamp),
)


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
    sa.CheckConstraint("role IN ('observer', 'viewer', 'editor', 'owner')", name="role"),
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
    # The random text of a form that counts once, such as one that makes a secret.
    sa.Column("form", CText),
    sa.Index(None, "at"),
    sa.Index(None, "form", postgresql_where=sa.text("form IS NOT NULL")),
)
