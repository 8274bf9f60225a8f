"""The tables of feeds, of their runs, and of the people whom the sync leaves out."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from roster_service.db.tables.base import CText, CTexts, Stamp, metadata

feeds = sa.Table(
    "feeds",
    metadata,
    sa.Column("id", sa.Integer, sa.Identity(), primary_key=True),
    sa.Column("name", CText, nullable=False, unique=True),
    sa.Column("format", CText, nullable=False),
    sa.Column("path", CText),
    sa.Column("enabled", sa.Boolean, nullable=False, server_default=sa.text("true")),
    # roster_service/feeds/feed_states.py
    sa.Column("state", CText, nullable=False, server_default=sa.text("'added'")),
    # The limits beyond which a run is held, in percent of the records or rows of a type; NULL: the service's setting.
    sa.Column("hold_tombstones_percent", sa.SmallInteger),
    sa.Column("hold_changes_percent", sa.SmallInteger),
    sa.Column("hold_rejected_percent", sa.SmallInteger),
    # The file beside the export whose presence means that the export is complete; NULL: its age tells.
    sa.Column("marker", CText),
    # The first and the last day of a pause, in which nothing is loaded, and its reason.
    sa.Column("pause_from", sa.Date),
    sa.Column("pause_until", sa.Date),
    sa.Column("pause_reason", CText),
    # The kind of the problem that was announced last; NULL after the recovery. Its message, when it was announced, and
    # the channels that took it.
    sa.Column("alerted", CText),
    sa.Column("alerted_message", CText),
    sa.Column("alerted_at", Stamp),
    sa.Column("alerted_channels", CTexts, nullable=False, server_default=sa.text("'{}'")),
    # Whether the sync refuses its exports for any deviation; if not, it accepts those of `tolerated.py`.
    sa.Column("strict", sa.Boolean, nullable=False, server_default=sa.text("false")),
    # The text of the file that maps words of the SIS to words of OneRoster; NULL: there is none.
    sa.Column("words", CText),
    # The digest of the export that was loaded last. The same export again changes nothing, unless rows of it were
    # rejected: then the digest has a mark in front.
    sa.Column("last_digest", sa.LargeBinary),
    # The columns whose days with slashes had the day first when a run read them last, each as its file and header.
    sa.Column("day_first", CTexts, nullable=False, server_default=sa.text("'{}'")),
    # Whether the next run may trust the fingerprints of the feed: the last run read every record of the feed in full.
    sa.Column("fingerprinted", sa.Boolean, nullable=False, server_default=sa.text("false")),
    # The state of its records: the last revision of the roster that changed one of them, their newest stamp, and the
    # instant before which tombstones may have been purged.
    sa.Column("revision", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    sa.Column("as_of", Stamp, nullable=False, server_default=sa.text("'epoch'")),
    sa.Column("deletions_since", Stamp, nullable=False, server_default=sa.text("'epoch'")),
    sa.Column("created_at", Stamp, nullable=False, server_default=sa.text("now()")),
    sa.CheckConstraint("state IN ('tried', 'added', 'removed')", name="state"),
)

sync_runs = sa.Table(
    "sync_runs",
    metadata,
    sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
    sa.Column("feed_id", sa.ForeignKey("feeds.id"), nullable=False, index=True),
    sa.Column("format", CText, nullable=False),
    sa.Column("source", CText, nullable=False),
    sa.Column("started_at", Stamp, nullable=False),
    # NULL while it runs, and for a run whose process was killed.
    sa.Column("finished_at", Stamp),
    # The dateLastModified of all changes of the run, from when it begins to write them; NULL if it changed nothing.
    sa.Column("stamp", Stamp),
    sa.Column("outcome", CText, nullable=False),
    sa.Column("counts", JSONB, nullable=False),
    sa.Column("seconds", JSONB, nullable=False),
    # Why the roster is not that of the export, in one sentence.
    sa.Column("message", CText),
    # Who loaded the export, as `Actor` names a person or system user; NULL for a run without one.
    sa.Column("actor", CText),
    # When the export was written; NULL if neither its files nor its zip say it.
    sa.Column("written_at", Stamp),
    # The notices for the operator, one sentence each: tolerated deviations, and actions that nobody requested.
    sa.Column("notices", CTexts, nullable=False, server_default=sa.text("'{}'")),
    # The files of the format, as `ReadFile` of sync_scripts/engine/report.py has them; none for a run without a report.
    sa.Column("files", JSONB, nullable=False, server_default=sa.text("'[]'")),
    # The number of rejected rows; sync_rejections has the first of them.
    sa.Column("rejected", sa.Integer, nullable=False, server_default=sa.text("0")),
    # The groups of the root causes of rejected rows, as `Cause` of sync_scripts/reading/rejections.py has them.
    sa.Column("causes", JSONB, nullable=False, server_default=sa.text("'[]'")),
    # Of a held run: what would vanish by school and class, and samples, as sync_scripts/applying/preview.py has them.
    sa.Column("preview", JSONB(none_as_null=True)),
    # Whether sync_changes has the changes of the run; false for a run that stored none, or whose changes were deleted.
    sa.Column("has_changes", sa.Boolean, nullable=False, server_default=sa.text("false")),
    # The export: of a held run, kept until it is approved or discarded; of the latest runs, for an undo
    # (roster_service/feeds/undo.py).
    sa.Column("kept_export", CText),
    # The digest of that export as it was read: an approval and an undo load no other export.
    sa.Column("kept_digest", sa.LargeBinary),
    # The held run that this one applies, and the run that this one takes back, from its begin on.
    sa.Column("approves", sa.BigInteger),
    sa.Column("undoes", sa.BigInteger),
    sa.CheckConstraint(
        "outcome IN ('running', 'done', 'unchanged', 'partial', 'stale', 'held', 'approved', 'discarded', 'replaced', "
        "'refused', 'missing', 'incomplete', 'failed', 'interrupted')",
        name="outcome",
    ),
    sa.Index("ix_sync_runs_running", "feed_id", postgresql_where=sa.text("outcome = 'running'")),
)

sync_rejections = sa.Table(
    "sync_rejections",
    metadata,
    sa.Column("run_id", sa.ForeignKey("sync_runs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("file", CText, nullable=False),
    sa.Column("line", sa.Integer),
    sa.Column("header", CText),
    sa.Column("value", CText),
    sa.Column("reason", CText, nullable=False),
    # The id in the row.
    sa.Column("sourced_id", CText),
    # The index of the row's root cause in `sync_runs.causes`; NULL if there is no such group.
    sa.Column("cause", sa.Integer),
    # Whether the row is rejected only because it refers to a rejected row.
    sa.Column("is_consequence", sa.Boolean, nullable=False, server_default=sa.text("false")),
    # The records that the row names, as `NamedRecord` of roster_service/feeds/rejected_rows.py has them.
    sa.Column("records", JSONB, nullable=False, server_default=sa.text("'[]'")),
)

# The stored records that a run changed, revived or marked as deleted; records that it added have its stamp.
sync_changes = sa.Table(
    "sync_changes",
    metadata,
    sa.Column("run_id", sa.ForeignKey("sync_runs.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("type", CText, nullable=False),
    sa.Column("sourced_id", CText, nullable=False, index=True),
    sa.Column("change", CText, nullable=False),
    # The dateLastModified of the record before the run.
    sa.Column("previous_stamp", Stamp, nullable=False),
    # {field: [value before, value after]}; NULL for a record that was marked as deleted.
    sa.Column("fields", JSONB),
)

# What the checks of roster_service/feeds/quality_checks.py have counted of a feed at a revision. `totals`: {check:
# number}, `schools`: {check: {school: number}}, NULL for the revisions before the present one; a number that took too
# long to count is null.
quality_counts = sa.Table(
    "quality_counts",
    metadata,
    sa.Column("feed_id", sa.ForeignKey("feeds.id"), primary_key=True),
    sa.Column("revision", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("counted_at", Stamp, nullable=False, server_default=sa.text("now()")),
    sa.Column("totals", JSONB, nullable=False),
    sa.Column("schools", JSONB(none_as_null=True)),
)


# A row for each person whom the sync leaves out of every export.
exclusions = sa.Table(
    "exclusions",
    metadata,
    # HMAC-SHA256 of the sourcedId, with a key that follows from the service's secret key.
    sa.Column("id_hash", sa.LargeBinary, primary_key=True),
    # roster_service/feeds/exclusions.py
    sa.Column("kind", CText, nullable=False),
    # The hash of nothing with the same key: another key would match nobody.
    sa.Column("key_check", sa.LargeBinary, nullable=False),
    # Of a hidden person, so that operators can list them; NULL for an erased one.
    sa.Column("sourced_id", CText),
    sa.Column("at", Stamp, nullable=False, server_default=sa.text("now()")),
    sa.CheckConstraint("kind IN ('erased', 'hidden')", name="kind"),
    sa.CheckConstraint("kind = 'hidden' OR sourced_id IS NULL", name="erased_id"),
)
