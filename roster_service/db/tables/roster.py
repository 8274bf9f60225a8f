"""The tables of the roster: records, their parts, and the state of the roster.

They have no foreign keys: a load checks references in sets before it writes, which takes one pass instead of one lookup
for each row, and a tombstone may exist for a night longer than the record that it refers to.

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
    Index,
    Integer,
    SmallInteger,
    Table,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, UUID
from sqlalchemy.schema import SchemaItem

from roster_service.db.folding import fold_column, make_name_vector
from roster_service.db.tables.base import CText, CTexts, Stamp, metadata


def _roster_table(name: str, *items: SchemaItem) -> Table:
    """Declares a roster table: the base fields of every resource, the feed that owns the row, and `items`."""
    return Table(
        name,
        metadata,
        Column("sourced_id", CText, primary_key=True),
        Column("feed_id", Integer, nullable=False),
        Column("status", CText, nullable=False),
        Column("date_last_modified", Stamp, nullable=False),
        *items,
        # The fingerprint of the export row that the record was made from. The next run does not compare the cells of a
        # row with the same fingerprint. NULL: the next run has to compare the row in any case.
        Column("fingerprint", BigInteger),
        CheckConstraint("status IN ('active', 'tobedeleted')", name="status"),
        # Deltas: filter=dateLastModified>'...'
        Index(None, "date_last_modified"),
        # A load reads the records of its feed.
        Index(None, "feed_id", "date_last_modified"),
    )


def _label() -> Column[Any]:
    """Declares the number of the record's visibility label; NULL: nobody sees the record."""
    return Column("label_id", Integer)


def _label_index() -> Index:
    """Declares the index by which the records are found that a vendor sees."""
    return Index(None, "label_id", "sourced_id")


def _metadata() -> Column[Any]:
    """Declares the further columns of the export. Only types whose `metadata` an interface shows have it: a change of
    what nobody is shown must not stamp a record."""
    return Column("metadata", JSONB)


orgs = _roster_table(
    "orgs",
    _metadata(),
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
    _label(),
    Column("title", CText, nullable=False),
    Column("school_year_id", CText),
    Column("course_code", CText),
    Column("grades", CTexts),
    Column("org_id", CText, nullable=False),
    Column("subjects", CTexts),
    Column("subject_codes", CTexts),
    Index(None, "org_id", "sourced_id"),
    _label_index(),
)

classes = _roster_table(
    "classes",
    _label(),
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
    # When a teacher last left the class, for the stamps of the students whose records name the teachers.
    Column("teachers_changed", Stamp),
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
    _metadata(),
    _label(),
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
    # When an enrollment or the demographics last left what the vendor interface shows of a student.
    Column("parts_changed", Stamp),
    _label_index(),
    Index(None, "family_name", "sourced_id"),
    Index(None, "username"),
    Index("ix_users_parts_changed", "parts_changed", postgresql_where=text("parts_changed IS NOT NULL")),
)
# The search of operators: the beginnings of the words of names, and of an e-mail, without accents and case.
_NAMES = ("given_name", "middle_name", "family_name", "preferred_first_name", "preferred_last_name")
name_vector = make_name_vector(*(users.c[_name] for _name in _NAMES))
Index("ix_users_names", name_vector, postgresql_using="gin")
Index("ix_users_email_folded", fold_column(users.c.email))

# A user's roles, in the words of OneRoster 1.2 whatever the version of the export. `origin` is `export` for a role that
# the export has, and `enrollment` for a role that the sync adds because the user has an enrollment at a school and no
# role there. So every enrolled user has a role at the school, and a caller that sees an enrollment also sees its user.
# The interfaces show only the roles of the export.
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
    _label(),
    Column("user_id", CText, nullable=False),
    Column("class_id", CText, nullable=False),
    Column("school_id", CText, nullable=False),
    # Whether its school alone opens it: its class is of the school, and its user has a role there, other than a
    # guardian's. The policy asks the class and the roles of the user of all other enrollments.
    Column("school_opens", Boolean),
    Column("role", CText, nullable=False),
    Column("primary", Boolean),
    Column("begin_date", Date),
    Column("end_date", Date),
    Index(None, "class_id"),
    Index(None, "user_id"),
    Index(None, "school_id", "sourced_id"),
    _label_index(),
)

demographics = _roster_table(
    "demographics",
    _metadata(),
    _label(),
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
    _label_index(),
)

# A table of one row: the state of the whole roster. `revision` grows when a sync changes a record; `as_of` is the
# newest stamp; tombstones older than `deletions_since` may have been purged. Each vendor sees the state of its own
# feeds (`visible_feeds`).
roster_state = Table(
    "roster_state",
    metadata,
    Column("singleton", Boolean, primary_key=True, server_default=text("true")),
    Column("revision", BigInteger, nullable=False),
    Column("as_of", Stamp, nullable=False),
    Column("deletions_since", Stamp, nullable=False),
    # The salt of the hashes in `visible_feeds.visible_set`.
    Column("salt", UUID, nullable=False, server_default=text("gen_random_uuid()")),
    # The base of the names of the workers' roles (roster_service/db/roles.py); NULL until an upgrade has made them.
    Column("role_base", CText),
    # Over which channels the last nightly sync announces; NULL before the first.
    Column("sync_channels", CTexts),
    # Determines which versions of the service can serve the tables (roster_service/roster/upgrades.py).
    Column("generation", Integer, nullable=False, server_default=text("1")),
    # Where the present revision was published (roster_service/feeds/roster_state.py); NULL where no version noted it.
    Column("server", CText),
    CheckConstraint("singleton", name="singleton"),
)

PART_TABLES = (class_terms, user_roles, user_profiles, user_agents)
# The tables whose records have a visibility label, in the order in which the labels follow from each other.
LABELLED = (classes, courses, users, enrollments, demographics)
ROSTER_TABLES = (orgs, academic_sessions, courses, classes, users, enrollments, demographics)
