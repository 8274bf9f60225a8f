"""The tables of feeds, the roster and the accounts, in SQLAlchemy Core.

Text is `COLLATE "C"`: it sorts by code point and compares exactly, and one index serves both. Roster tables have no
foreign keys: a load checks references in sets before it writes, which takes one pass instead of one lookup for each
row, and a tombstone may exist for a night longer than the record that it refers to. The tables of accounts are small
and have foreign keys.

The first load makes the indexes of the roster, after its rows: building an index over all rows takes a fifth of the
time of inserting them into it one by one, and needs no lock that readers would notice. The load makes the primary keys
in the same way, as unique indexes with these names.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Date,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TIMESTAMP, UUID
from sqlalchemy.schema import SchemaItem

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)

CText = Text(collation="C")
CTexts: ARRAY[Any] = ARRAY(CText)
# In milliseconds, as the interfaces write instants: a filter with a stamp that a consumer has read finds its record.
Stamp = TIMESTAMP(timezone=True, precision=3)


def _roster_table(name: str, *items: SchemaItem) -> Table:
    """Declares a roster table: the base fields of every resource, the feed that owns the row, and `items`."""
    return Table(
        name,
        metadata,
        Column("sourced_id", CText, primary_key=True),
        Column("feed_id", Integer, nullable=False),
        Column("status", CText, nullable=False),
        Column("date_last_modified", Stamp, nullable=False),
        Column("metadata", JSONB),
        *items,
        # The fingerprint of the export row that the record was made from. The next run does not compare the cells of a
        # row with the same fingerprint. NULL: the next run has to compare the row in any case.
        Column("fingerprint", BigInteger),
        CheckConstraint("status IN ('active', 'tobedeleted')", name="status"),
        # Deltas: filter=dateLastModified>'...'
        Index(None, "date_last_modified"),
    )


# --- feeds and their runs ---------------------------------------------------------------------------------------

feeds = Table(
    "feeds",
    metadata,
    Column("id", Integer, Identity(), primary_key=True),
    Column("name", CText, nullable=False, unique=True),
    Column("format", CText, nullable=False),
    Column("path", CText),
    Column("enabled", Boolean, nullable=False, server_default=text("true")),
    # The limits beyond which a run is held, in percent of the records of a type; NULL: the service's setting.
    Column("hold_tombstones_percent", SmallInteger),
    Column("hold_changes_percent", SmallInteger),
    # The digest of the export that was loaded last without a rejected row. The same export again changes nothing.
    Column("last_digest", LargeBinary),
    # Whether the next run may trust the fingerprints of the feed: the last run read every record of the feed in full.
    Column("fingerprinted", Boolean, nullable=False, server_default=text("false")),
    Column("created_at", Stamp, nullable=False, server_default=text("now()")),
)

sync_runs = Table(
    "sync_runs",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("feed_id", ForeignKey("feeds.id"), nullable=False, index=True),
    Column("format", CText, nullable=False),
    Column("source", CText, nullable=False),
    Column("started_at", Stamp, nullable=False),
    # NULL while it runs, and for a run whose process was killed.
    Column("finished_at", Stamp),
    # The dateLastModified of all changes of the run; NULL if it changed nothing.
    Column("stamp", Stamp),
    Column("outcome", CText, nullable=False),
    Column("counts", JSONB, nullable=False),
    Column("seconds", JSONB, nullable=False),
    # The reason why it was refused, held or failed, in one sentence.
    Column("message", CText),
    # The notices for the operator, one sentence each: tolerated deviations, and actions that nobody requested.
    Column("notices", CTexts, nullable=False, server_default=text("'{}'")),
    # The number of rejected rows; sync_refusals has the first of them.
    Column("refused", Integer, nullable=False, server_default=text("0")),
    # The export of a held run, kept until it is approved or discarded.
    Column("kept_export", CText),
    # The digest of that export as it was read: an approval loads no other export.
    Column("kept_digest", LargeBinary),
    CheckConstraint(
        "outcome IN ('running', 'done', 'unchanged', 'held', 'approved', 'discarded', 'refused', 'failed', "
        "'interrupted')",
        name="outcome",
    ),
)

sync_refusals = Table(
    "sync_refusals",
    metadata,
    Column("run_id", ForeignKey("sync_runs.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("file", CText, nullable=False),
    Column("line", Integer),
    Column("header", CText),
    Column("value", CText),
    Column("reason", CText, nullable=False),
)

# A table of one row. `revision` grows when a sync changes a visible record; `as_of` is the newest stamp in the roster;
# tombstones older than `deletions_since` may have been purged.
roster_state = Table(
    "roster_state",
    metadata,
    Column("singleton", Boolean, primary_key=True, server_default=text("true")),
    Column("revision", BigInteger, nullable=False),
    Column("as_of", Stamp, nullable=False),
    Column("deletions_since", Stamp, nullable=False),
    # The salt of the hashes in `vendors.visible_set`.
    Column("salt", UUID, nullable=False, server_default=text("gen_random_uuid()")),
    # The base of the names of the workers' roles (roster_service/db/roles.py); NULL until an upgrade has made them.
    Column("role_base", CText),
    # Determines which versions of the service can serve the tables (roster_service/db/upgrades.py).
    Column("generation", Integer, nullable=False, server_default=text("1")),
    CheckConstraint("singleton", name="singleton"),
)

# --- the roster -------------------------------------------------------------------------------------------------

orgs = _roster_table(
    "orgs",
    Column("name", CText, nullable=False),
    Column("type", CText, nullable=False),
    Column("identifier", CText),
    Column("parent_id", CText, index=True),
    # The nearest org of type district at or above this one. District grants are compared with it.
    Column("district_id", CText, index=True),
)

academic_sessions = _roster_table(
    "academic_sessions",
    Column("title", CText, nullable=False),
    Column("start_date", Date, nullable=False),
    Column("end_date", Date, nullable=False),
    Column("type", CText, nullable=False),
    Column("parent_id", CText, index=True),
    Column("school_year", CText, nullable=False),
)

courses = _roster_table(
    "courses",
    Column("title", CText, nullable=False),
    Column("school_year_id", CText),
    Column("course_code", CText),
    Column("grades", CTexts),
    Column("org_id", CText, nullable=False),
    Column("subjects", CTexts),
    Column("subject_codes", CTexts),
    Index(None, "org_id", "sourced_id"),
)

classes = _roster_table(
    "classes",
    Column("title", CText, nullable=False),
    Column("class_code", CText),
    Column("class_type", CText),
    Column("location", CText),
    Column("grades", CTexts),
    Column("course_id", CText, nullable=False),
    Column("school_id", CText, nullable=False),
    Column("subjects", CTexts),
    Column("subject_codes", CTexts),
    Column("periods", CTexts),
    Index(None, "school_id", "sourced_id"),
    Index(None, "course_id", "sourced_id"),
)

class_terms = Table(
    "class_terms",
    metadata,
    Column("class_id", CText, primary_key=True),
    Column("ordinal", SmallInteger, primary_key=True),
    Column("session_id", CText, nullable=False),
    Index(None, "session_id", "class_id"),
)

users = _roster_table(
    "users",
    Column("user_master_identifier", CText),
    Column("username", CText),
    # [{"type": ..., "identifier": ...}, ...]
    Column("user_ids", JSONB),
    Column("enabled_user", Boolean, nullable=False),
    Column("given_name", CText, nullable=False),
    Column("family_name", CText, nullable=False),
    Column("middle_name", CText),
    Column("preferred_first_name", CText),
    Column("preferred_middle_name", CText),
    Column("preferred_last_name", CText),
    Column("pronouns", CText),
    Column("primary_org_id", CText),
    Column("identifier", CText, index=True),
    Column("email", CText, index=True),
    Column("sms", CText),
    Column("phone", CText),
    Column("grades", CTexts),
    Index(None, "family_name", "sourced_id"),
    Index(None, "username"),
)

# A user's roles, in the words of OneRoster 1.2 whatever the version of the export. `origin` is `export` for a role that
# the export has, and `enrollment` for a role that the sync adds because the user has an enrollment at a school and no
# role there. So every enrolled user has a role at the school, and a caller that sees an enrollment also sees its user.
user_roles = Table(
    "user_roles",
    metadata,
    Column("user_id", CText, primary_key=True),
    Column("ordinal", SmallInteger, primary_key=True),
    Column("org_id", CText, nullable=False),
    Column("role", CText, nullable=False),
    Column("role_type", CText, nullable=False),
    Column("begin_date", Date),
    Column("end_date", Date),
    Column("profile_id", CText),
    Column("origin", CText, nullable=False),
    # The sourcedId of the role's row in roles.csv, by which a delta names it; NULL if another file has the role.
    Column("row_id", CText),
    # True for a role that the export has removed after its user was deleted: only the tombstone of the user shows it.
    Column("taken_back", Boolean),
    CheckConstraint("role_type IN ('primary', 'secondary')", name="role_type"),
    CheckConstraint("origin IN ('export', 'enrollment')", name="origin"),
    Index(None, "org_id", "role", "user_id"),
    Index(None, "role", "user_id"),
)

user_profiles = Table(
    "user_profiles",
    metadata,
    Column("user_id", CText, primary_key=True),
    Column("profile_id", CText, primary_key=True),
    Column("profile_type", CText, nullable=False),
    Column("vendor_id", CText, nullable=False),
    Column("application_id", CText),
    Column("description", CText),
    # [{"type": ..., "username": ...}, ...]; passwords are never stored.
    Column("credentials", JSONB),
    # As in user_roles.
    Column("taken_back", Boolean),
)

user_agents = Table(
    "user_agents",
    metadata,
    Column("user_id", CText, primary_key=True),
    Column("ordinal", SmallInteger, primary_key=True),
    Column("agent_id", CText, nullable=False, index=True),
)

enrollments = _roster_table(
    "enrollments",
    Column("user_id", CText, nullable=False),
    Column("class_id", CText, nullable=False),
    Column("school_id", CText, nullable=False),
    Column("role", CText, nullable=False),
    Column("primary", Boolean),
    Column("begin_date", Date),
    Column("end_date", Date),
    Index(None, "class_id"),
    Index(None, "user_id"),
    Index(None, "school_id", "sourced_id"),
)

demographics = _roster_table(
    "demographics",
    Column("birth_date", Date),
    Column("sex", CText),
    Column("american_indian_or_alaska_native", Boolean),
    Column("asian", Boolean),
    Column("black_or_african_american", Boolean),
    Column("native_hawaiian_or_other_pacific_islander", Boolean),
    Column("white", Boolean),
    Column("demographic_race_two_or_more_races", Boolean),
    Column("hispanic_or_latino_ethnicity", Boolean),
    Column("country_of_birth_code", CText),
    Column("state_of_birth_abbreviation", CText),
    Column("city_of_birth", CText),
    Column("public_school_residence_status", CText),
)

# --- accounts ---------------------------------------------------------------------------------------------------

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
    # The hash of the vendor's visible orgs.
    Column("visible_set", CText, nullable=False, server_default=text("''")),
    Column("created_at", Stamp, nullable=False, server_default=text("now()")),
    # argon2id; NULL: no login is possible.
    Column("password_hash", CText),
    # The permission flags: the parts of a student record that `include` may request.
    Column("flags", CTexts, nullable=False, server_default=text("'{}'")),
    # The vendor's own rate limits; NULL: the default.
    Column("requests_per_second", Integer),
    Column("burst", Integer),
    Column("requests_per_day", Integer),
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
    Column("scopes", CTexts, nullable=False),
    Column("enabled", Boolean, nullable=False, server_default=text("true")),
    Column("version", Integer, nullable=False, server_default=text("1")),
    Column("created_at", Stamp, nullable=False, server_default=text("now()")),
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

PART_TABLES = (class_terms, user_roles, user_profiles, user_agents)
ROSTER_TABLES = (orgs, academic_sessions, courses, classes, users, enrollments, demographics)
