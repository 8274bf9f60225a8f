"""The tables of the sync: feeds, their runs, and the rejected rows and the changes of a run."""

from __future__ import annotations

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
    SmallInteger,
    Table,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from roster_service.db.tables.base import CText, CTexts, Stamp, metadata

feeds = Table(
    "feeds",
    metadata,
    Column("id", Integer, Identity(), primary_key=True),
    Column("name", CText, nullable=False, unique=True),
    Column("format", CText, nullable=False),
    Column("path", CText),
    Column("enabled", Boolean, nullable=False, server_default=text("true")),
    # roster_service/feeds/feed_states.py
    Column("state", CText, nullable=False, server_default=text("'added'")),
    # The limits beyond which a run is held, in percent of the records or rows of a type; NULL: the service's setting.
    Column("hold_tombstones_percent", SmallInteger),
    Column("hold_changes_percent", SmallInteger),
    Column("hold_rejected_percent", SmallInteger),
    # The file beside the export whose presence means that the export is complete; NULL: its age tells.
    Column("marker", CText),
    # The first and the last day of a pause, in which nothing is loaded, and its reason.
    Column("pause_from", Date),
    Column("pause_until", Date),
    Column("pause_reason", CText),
    # The kind of the problem that was announced last; NULL after the recovery.
    Column("alerted", CText),
    # Whether the sync refuses its exports for any deviation; if not, it accepts those of `tolerated.py`.
    Column("strict", Boolean, nullable=False, server_default=text("false")),
    # The text of the file that maps words of the SIS to words of OneRoster; NULL: there is none.
    Column("words", CText),
    # The digest of the export that was loaded last without a rejected row. The same export again changes nothing.
    Column("last_digest", LargeBinary),
    # The columns whose days with slashes had the day first when a run read them last, each as its file and header.
    Column("day_first", CTexts, nullable=False, server_default=text("'{}'")),
    # Whether the next run may trust the fingerprints of the feed: the last run read every record of the feed in full.
    Column("fingerprinted", Boolean, nullable=False, server_default=text("false")),
    # The state of its records: the last revision of the roster that changed one of them, their newest stamp, and the
    # instant before which tombstones may have been purged.
    Column("revision", BigInteger, nullable=False, server_default=text("0")),
    Column("as_of", Stamp, nullable=False, server_default=text("'epoch'")),
    Column("deletions_since", Stamp, nullable=False, server_default=text("'epoch'")),
    Column("created_at", Stamp, nullable=False, server_default=text("now()")),
    CheckConstraint("state IN ('tried', 'added', 'removed')", name="state"),
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
    # The dateLastModified of all changes of the run, from when it begins to write them; NULL if it changed nothing.
    Column("stamp", Stamp),
    Column("outcome", CText, nullable=False),
    Column("counts", JSONB, nullable=False),
    Column("seconds", JSONB, nullable=False),
    # Why the roster is not that of the export, in one sentence.
    Column("message", CText),
    # Who loaded the export, as `Actor` names a person or system user; NULL for runs before this was stored.
    Column("actor", CText),
    # When the export was written; NULL if neither its files nor its zip say it.
    Column("written_at", Stamp),
    # The notices for the operator, one sentence each: tolerated deviations, and actions that nobody requested.
    Column("notices", CTexts, nullable=False, server_default=text("'{}'")),
    # The files of the format, as `ReadFile` of sync_scripts/engine/report.py has them; none for a run without a report.
    Column("files", JSONB, nullable=False, server_default=text("'[]'")),
    # The number of rejected rows; sync_refusals has the first of them.
    Column("refused", Integer, nullable=False, server_default=text("0")),
    # The groups of the root causes of rejected rows, as `Cause` of sync_scripts/reading/rejections.py has them.
    Column("causes", JSONB, nullable=False, server_default=text("'[]'")),
    # Of a held run: what would vanish by school and class, and samples, as sync_scripts/applying/preview.py has them.
    Column("preview", JSONB(none_as_null=True)),
    # Whether sync_changes has the changes of the run; false for a run that stored none, or whose changes were deleted.
    Column("has_changes", Boolean, nullable=False, server_default=text("false")),
    # The export of a held run, kept until it is approved or discarded.
    Column("kept_export", CText),
    # The digest of that export as it was read: an approval loads no other export.
    Column("kept_digest", LargeBinary),
    CheckConstraint(
        "outcome IN ('running', 'done', 'unchanged', 'partial', 'stale', 'held', 'approved', 'discarded', "
        "'refused', 'missing', 'incomplete', 'failed', 'interrupted')",
        name="outcome",
    ),
    Index("ix_sync_runs_running", "feed_id", postgresql_where=text("outcome = 'running'")),
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
    # The id in the row.
    Column("sourced_id", CText),
    # The index of the row's root cause in `sync_runs.causes`; NULL if there is no such group.
    Column("cause", Integer),
    # Whether the row is rejected only because it refers to a rejected row.
    Column("is_consequence", Boolean, nullable=False, server_default=text("false")),
    # The records that the row names, as `NamedRecord` of roster_service/feeds/rejected_rows.py has them.
    Column("records", JSONB, nullable=False, server_default=text("'[]'")),
)

# The stored records that a run changed, revived or marked as deleted; records that it added have its stamp.
sync_changes = Table(
    "sync_changes",
    metadata,
    Column("run_id", ForeignKey("sync_runs.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("type", CText, nullable=False),
    Column("sourced_id", CText, nullable=False, index=True),
    Column("change", CText, nullable=False),
    # The dateLastModified of the record before the run.
    Column("previous_stamp", Stamp, nullable=False),
    # {field: [value before, value after]}; NULL for a record that was marked as deleted.
    Column("fields", JSONB),
)

# What the checks of roster_service/feeds/quality_checks.py have counted of a feed at a revision. `totals`: {check:
# number}, `schools`: {check: {school: number}}, NULL for the revisions before the present one; a number that took too
# long to count is null.
quality_counts = Table(
    "quality_counts",
    metadata,
    Column("feed_id", ForeignKey("feeds.id"), primary_key=True),
    Column("revision", BigInteger, primary_key=True, autoincrement=False),
    Column("counted_at", Stamp, nullable=False, server_default=text("now()")),
    Column("totals", JSONB, nullable=False),
    Column("schools", JSONB(none_as_null=True)),
)
