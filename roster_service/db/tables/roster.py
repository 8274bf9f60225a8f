"""The tables of the roster, and of the labels that decide who sees a record.

A column with the id of another record declares it (`_refers`), and roster_service/roster/references.py has the graph of
these references. The tables have no foreign keys: a load checks references in sets before it writes, which takes one
pass instead of one lookup for each row, and a tombstone may exist for a night longer than the record that it refers to.

The first load makes the indexes of the roster, after its rows: building an index over all rows takes a fifth of the
time of inserting them into it one by one, and needs no lock that readers would notice. The load makes the primary keys
in the same way, as unique indexes with these names.

What opens a record is the same for thousands of records: it is a label, kept once, and each record has its number. The
sync makes the labels (sync_scripts/applying/labels.py).
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB, UUID
from sqlalchemy.schema import SchemaItem

from roster_service.db.folding import fold_column, make_name_vector
from roster_service.db.tables.base import CText, CTexts, Stamp, metadata


def _roster_table(name: str, *items: SchemaItem) -> sa.Table:
    """Declares a roster table: the base fields of every resource, the feed that owns the row, and `items`."""
    return sa.Table(
        name,
        metadata,
        sa.Column("sourced_id", CText, primary_key=True),
        sa.Column("feed_id", sa.Integer, nullable=False),
        sa.Column("status", CText, nullable=False),
        sa.Column("date_last_modified", Stamp, nullable=False),
        *items,
        # The fingerprint of the export row that the record was made from. The next run does not compare the cells of a
        # row with the same fingerprint. NULL: the next run has to compare the row in any case.
        sa.Column("fingerprint", sa.BigInteger),
        sa.CheckConstraint("status IN ('active', 'tobedeleted')", name="status"),
        # Deltas: filter=dateLastModified>'...'
        sa.Index(None, "date_last_modified"),
        # A load reads the records of its feed.
        sa.Index(None, "feed_id", "date_last_modified"),
    )


def _refers(name: str, target: str, *, computed: bool = False, **options: Any) -> sa.Column[str]:
    """Declares a column with the id of a record of the table `target`. `computed`: it follows from other references."""
    return sa.Column(name, CText, info={"refers": target, "computed": computed}, **options)


def _refers_to_many(name: str, target: str) -> sa.Column[Any]:
    """Declares a column with the ids of records of the table `target`, each once; NULL for none."""
    return sa.Column(name, CTexts, info={"refers": target, "computed": False})


def _part_of(name: str, owner: str) -> sa.Column[str]:
    """Declares the column of a table of parts with the id of the record of the table `owner` that has the part."""
    return sa.Column(name, CText, primary_key=True, info={"part_of": owner})


def _ended_by_need() -> tuple[sa.Column[Any], sa.Index]:
    """Declares whether a tombstone ended because a record that it needs did: then it returns with that record. NULL
    for all others."""
    return (
        sa.Column("ended_by_need", sa.Boolean),
        # Hardly any record is one of them.
        sa.Index(None, "ended_by_need", postgresql_where=sa.text("ended_by_need")),
    )


def _label() -> sa.Column[Any]:
    """Declares the number of the record's visibility label; NULL: nobody sees the record."""
    return sa.Column("label_id", sa.Integer)


def _label_index() -> sa.Index:
    """Declares the index by which the records are found that a vendor sees."""
    return sa.Index(None, "label_id", "sourced_id")


def _metadata() -> sa.Column[Any]:
    """Declares the further columns of the export. Only types whose `metadata` an interface shows have it: a change of
    what nobody is shown must not stamp a record."""
    return sa.Column("metadata", JSONB)


orgs = _roster_table(
    "orgs",
    _metadata(),
    sa.Column("name", CText, nullable=False),
    sa.Column("type", CText, nullable=False),
    sa.Column("identifier", CText),
    _refers("parent_id", "orgs", index=True),
    # The nearest org of type district at or above this one. District grants are compared with it.
    _refers("district_id", "orgs", computed=True, index=True),
)

academic_sessions = _roster_table(
    "academic_sessions",
    sa.Column("title", CText, nullable=False),
    sa.Column("start_date", sa.Date, nullable=False),
    sa.Column("end_date", sa.Date, nullable=False),
    sa.Column("type", CText, nullable=False),
    _refers("parent_id", "academic_sessions", index=True),
    sa.Column("school_year", CText, nullable=False),
)

courses = _roster_table(
    "courses",
    *_ended_by_need(),
    _label(),
    sa.Column("title", CText, nullable=False),
    _refers("school_year_id", "academic_sessions"),
    sa.Column("course_code", CText),
    sa.Column("grades", CTexts),
    _refers("org_id", "orgs", nullable=False),
    sa.Column("subjects", CTexts),
    sa.Column("subject_codes", CTexts),
    sa.Index(None, "org_id", "sourced_id"),
    _label_index(),
)

classes = _roster_table(
    "classes",
    *_ended_by_need(),
    _label(),
    sa.Column("title", CText, nullable=False),
    sa.Column("class_code", CText),
    sa.Column("class_type", CText),
    sa.Column("location", CText),
    sa.Column("grades", CTexts),
    _refers("course_id", "courses", nullable=False),
    _refers("school_id", "orgs", nullable=False),
    # Who sees a class sees all terms of its feed: they need no table with rights of its own.
    _refers_to_many("term_ids", "academic_sessions"),
    sa.Column("subjects", CTexts),
    sa.Column("subject_codes", CTexts),
    sa.Column("periods", CTexts),
    # When a teacher last left the class, for the stamps of the students whose records name the teachers.
    sa.Column("teachers_changed", Stamp),
    sa.Index(None, "school_id", "sourced_id"),
    sa.Index(None, "course_id", "sourced_id"),
    sa.Index(None, "term_ids", postgresql_using="gin"),
)
# The search of operators: the beginnings of the words of titles and codes.
class_vector = make_name_vector(classes.c.title, classes.c.class_code)
sa.Index("ix_classes_words", class_vector, postgresql_using="gin")

users = _roster_table(
    "users",
    _metadata(),
    _label(),
    sa.Column("user_master_identifier", CText),
    sa.Column("username", CText),
    # [{"type": ..., "identifier": ...}, ...]
    sa.Column("user_ids", JSONB),
    sa.Column("enabled_user", sa.Boolean, nullable=False),
    sa.Column("given_name", CText, nullable=False),
    sa.Column("family_name", CText, nullable=False),
    sa.Column("middle_name", CText),
    sa.Column("preferred_first_name", CText),
    sa.Column("preferred_middle_name", CText),
    sa.Column("preferred_last_name", CText),
    sa.Column("pronouns", CText),
    _refers("primary_org_id", "orgs"),
    sa.Column("identifier", CText, index=True),
    sa.Column("email", CText, index=True),
    sa.Column("sms", CText),
    sa.Column("phone", CText),
    sa.Column("grades", CTexts),
    # When an enrollment or the demographics last left what the vendor interface shows of a student.
    sa.Column("parts_changed", Stamp),
    _label_index(),
    sa.Index(None, "family_name", "sourced_id"),
    sa.Index(None, "username"),
    sa.Index("ix_users_parts_changed", "parts_changed", postgresql_where=sa.text("parts_changed IS NOT NULL")),
)
# The search of operators: the beginnings of the words of names, and of an e-mail, without accents and case.
_NAMES = ("given_name", "middle_name", "family_name", "preferred_first_name", "preferred_last_name")
name_vector = make_name_vector(*(users.c[_name] for _name in _NAMES))
sa.Index("ix_users_names", name_vector, postgresql_using="gin")
sa.Index("ix_users_email_folded", fold_column(users.c.email))

# A user's roles, in the words of OneRoster 1.2 whatever the version of the export. `origin` is `export` for a role that
# the export has, and `enrollment` for a role that the sync adds because the user has an enrollment at a school and no
# role there. So every enrolled user has a role at the school, and a caller that sees an enrollment also sees its user.
# The single role of 1.1 is one of the export, if the caller sees any.
user_roles = sa.Table(
    "user_roles",
    metadata,
    _part_of("user_id", "users"),
    sa.Column("ordinal", sa.SmallInteger, primary_key=True),
    _refers("org_id", "orgs", nullable=False),
    sa.Column("role", CText, nullable=False),
    sa.Column("role_type", CText, nullable=False),
    sa.Column("begin_date", sa.Date),
    sa.Column("end_date", sa.Date),
    sa.Column("profile_id", CText),
    sa.Column("origin", CText, nullable=False),
    # The sourcedId of the role's row in roles.csv, by which a delta names it; NULL if another file has the role.
    sa.Column("row_id", CText),
    # True for a role that the export has removed after its user was deleted: only the tombstone of the user shows it.
    sa.Column("taken_back", sa.Boolean),
    sa.CheckConstraint("role_type IN ('primary', 'secondary')", name="role_type"),
    sa.CheckConstraint("origin IN ('export', 'enrollment')", name="origin"),
    sa.Index(None, "org_id", "role", "user_id"),
    sa.Index(None, "role", "user_id"),
)

user_profiles = sa.Table(
    "user_profiles",
    metadata,
    _part_of("user_id", "users"),
    sa.Column("profile_id", CText, primary_key=True),
    sa.Column("profile_type", CText, nullable=False),
    sa.Column("vendor_id", CText, nullable=False),
    sa.Column("application_id", CText),
    sa.Column("description", CText),
    # [{"type": ..., "username": ...}, ...]; passwords are never stored.
    sa.Column("credentials", JSONB),
    # As in user_roles.
    sa.Column("taken_back", sa.Boolean),
)

user_agents = sa.Table(
    "user_agents",
    metadata,
    _part_of("user_id", "users"),
    sa.Column("ordinal", sa.SmallInteger, primary_key=True),
    _refers("agent_id", "users", nullable=False, index=True),
)

enrollments = _roster_table(
    "enrollments",
    *_ended_by_need(),
    _label(),
    _refers("user_id", "users", nullable=False),
    _refers("class_id", "classes", nullable=False),
    _refers("school_id", "orgs", nullable=False),
    # Whether its school alone opens it: its class is of the school, and its user has a role there, other than a
    # guardian's. The policy asks the class and the roles of the user of all other enrollments.
    sa.Column("school_opens", sa.Boolean),
    sa.Column("role", CText, nullable=False),
    sa.Column("primary", sa.Boolean),
    sa.Column("begin_date", sa.Date),
    sa.Column("end_date", sa.Date),
    sa.Index(None, "class_id"),
    # The teachers of a class: to find them among the students of a class takes twice as long as all else.
    sa.Index("ix_enrollments_class_id_teachers", "class_id", postgresql_where=sa.text("role = 'teacher'")),
    sa.Index(None, "user_id"),
    sa.Index(None, "school_id", "sourced_id"),
    _label_index(),
)

demographics = _roster_table(
    "demographics",
    *_ended_by_need(),
    _metadata(),
    _label(),
    sa.Column("birth_date", sa.Date),
    sa.Column("sex", CText),
    sa.Column("american_indian_or_alaska_native", sa.Boolean),
    sa.Column("asian", sa.Boolean),
    sa.Column("black_or_african_american", sa.Boolean),
    sa.Column("native_hawaiian_or_other_pacific_islander", sa.Boolean),
    sa.Column("white", sa.Boolean),
    sa.Column("demographic_race_two_or_more_races", sa.Boolean),
    sa.Column("hispanic_or_latino_ethnicity", sa.Boolean),
    sa.Column("country_of_birth_code", CText),
    sa.Column("state_of_birth_abbreviation", CText),
    sa.Column("city_of_birth", CText),
    sa.Column("public_school_residence_status", CText),
    _label_index(),
)
# They have the id of their user.
demographics.c.sourced_id.info.update(refers="users", computed=False)

# A table of one row: the state of the whole roster. `revision` grows when a sync changes a record; `as_of` is the
# newest stamp; tombstones older than `deletions_since` may have been purged. Each vendor sees the state of its own
# feeds (`visible_feeds`).
roster_state = sa.Table(
    "roster_state",
    metadata,
    sa.Column("singleton", sa.Boolean, primary_key=True, server_default=sa.text("true")),
    sa.Column("revision", sa.BigInteger, nullable=False),
    sa.Column("as_of", Stamp, nullable=False),
    sa.Column("deletions_since", Stamp, nullable=False),
    # The salt of the hashes in `visible_feeds.visible_set`.
    sa.Column("salt", UUID, nullable=False, server_default=sa.text("gen_random_uuid()")),
    # The base of the names of the workers' roles (roster_service/db/roles.py); NULL until an upgrade has made them.
    sa.Column("role_base", CText),
    # Over which channels the last nightly sync announces; NULL before the first.
    sa.Column("sync_channels", CTexts),
    # Determines which versions of the service can serve the tables (roster_service/roster/upgrades.py).
    sa.Column("generation", sa.Integer, nullable=False, server_default=sa.text("1")),
    # Where the present revision was published (roster_service/feeds/roster_state.py); NULL where no version noted it.
    sa.Column("server", CText),
    sa.CheckConstraint("singleton", name="singleton"),
)

PART_TABLES = (user_roles, user_profiles, user_agents)
# The tables whose records need others: they end with them, and return with them.
NEEDY = (courses, classes, enrollments, demographics)
# The tables whose records have a visibility label, in the order in which the labels follow from each other.
LABELLED = (classes, courses, users, enrollments, demographics)
ROSTER_TABLES = (orgs, academic_sessions, courses, classes, users, enrollments, demographics)


# A label opens a record for a caller if all of `all_orgs` are granted, and besides one of `any_orgs` is granted, or one
# of `guardian_orgs` is and the caller sees guardians, or one of `listed_orgs` is visible. Empty lists open nothing.
visibility_labels = sa.Table(
    "visibility_labels",
    metadata,
    # A number is never used again. A label stays while a record or a departure has its number.
    sa.Column("id", sa.Integer, sa.Identity(), primary_key=True),
    sa.Column("feed_id", sa.Integer, nullable=False),
    # SHA-256 of the sorted lists: an index on long lists would fail.
    sa.Column("digest", sa.LargeBinary, nullable=False),
    sa.Column("all_orgs", CTexts, nullable=False),
    sa.Column("any_orgs", CTexts, nullable=False),
    sa.Column("guardian_orgs", CTexts, nullable=False),
    sa.Column("listed_orgs", CTexts, nullable=False),
    # Those of `any_orgs` at which a user is a student, and a teacher.
    sa.Column("student_orgs", CTexts, nullable=False),
    sa.Column("teacher_orgs", CTexts, nullable=False),
    sa.UniqueConstraint("feed_id", "digest"),
)

# A record whose label changed: a tombstone for those who see its former label, and not the record any more.
departures = sa.Table(
    "departures",
    metadata,
    # The name of the record's table.
    sa.Column("type", CText, primary_key=True),
    sa.Column("sourced_id", CText, primary_key=True),
    # The former label.
    # 0: the record left a group.
    sa.Column("label_id", sa.Integer, primary_key=True),
    sa.Column("feed_id", sa.Integer, nullable=False),
    # The person whose record it is; NULL for a record of no person.
    sa.Column("person_id", CText, index=True),
    sa.Column("departed_at", Stamp, nullable=False),
    # The group that it left, and of people the role and its org, by which the group had them; 0 and "" for a label.
    sa.Column("group_id", sa.Integer, primary_key=True, server_default=sa.text("0")),
    sa.Column("org_id", CText, primary_key=True, server_default=sa.text("''")),
    sa.Column("role", CText, primary_key=True, server_default=sa.text("''")),
    # The vendor from which the person is kept since then, whom alone it is shown; 0: all.
    sa.Column("vendor_id", sa.Integer, primary_key=True, server_default=sa.text("0")),
    sa.Index(None, "feed_id", "departed_at"),
)
