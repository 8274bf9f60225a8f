"""The tables of visibility labels, and of the departures that follow from them.

What opens a record is the same for thousands of records: it is a label, kept once, and each record has its number. The
sync makes the labels (sync_scripts/applying/labels.py).
"""

from __future__ import annotations

import sqlalchemy as sa

from roster_service.db.tables.base import CText, CTexts, Stamp, metadata

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
    sa.Column("label_id", sa.Integer, primary_key=True),
    sa.Column("feed_id", sa.Integer, nullable=False),
    # The person whose record it is; NULL for a record of no person.
    sa.Column("person_id", CText, index=True),
    sa.Column("departed_at", Stamp, nullable=False),
    sa.Index(None, "feed_id", "departed_at"),
)
