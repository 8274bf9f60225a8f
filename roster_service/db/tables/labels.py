"""The tables of visibility labels, and of the departures that follow from them.

What opens a record is the same for thousands of records: it is a label, kept once, and each record has its number. The
sync makes the labels (sync_scripts/applying/labels.py).
"""

from __future__ import annotations

from sqlalchemy import Column, Identity, Index, Integer, LargeBinary, Table, UniqueConstraint

from roster_service.db.tables.base import CText, CTexts, Stamp, metadata

# A label opens a record for a caller if all of `all_orgs` are granted, and besides one of `any_orgs` is granted, or one
# of `guardian_orgs` is and the caller sees guardians, or one of `listed_orgs` is visible. Empty lists open nothing.
visibility_labels = Table(
    "visibility_labels",
    metadata,
    # A number is never used again. A label stays while a record or a departure has its number.
    Column("id", Integer, Identity(), primary_key=True),
    Column("feed_id", Integer, nullable=False),
    # SHA-256 of the sorted lists: an index on long lists would fail.
    Column("digest", LargeBinary, nullable=False),
    Column("all_orgs", CTexts, nullable=False),
    Column("any_orgs", CTexts, nullable=False),
    Column("guardian_orgs", CTexts, nullable=False),
    Column("listed_orgs", CTexts, nullable=False),
    # Those of `any_orgs` at which a user is a student, and a teacher.
    Column("student_orgs", CTexts, nullable=False),
    Column("teacher_orgs", CTexts, nullable=False),
    UniqueConstraint("feed_id", "digest"),
)

# A record whose label changed: a tombstone for those who see its former label, and not the record any more.
departures = Table(
    "departures",
    metadata,
    # The name of the record's table.
    Column("type", CText, primary_key=True),
    Column("sourced_id", CText, primary_key=True),
    # The former label.
    Column("label_id", Integer, primary_key=True),
    Column("feed_id", Integer, nullable=False),
    # The person whose record it is; NULL for a record of no person.
    Column("person_id", CText, index=True),
    Column("departed_at", Stamp, nullable=False),
    Index(None, "feed_id", "departed_at"),
)
