"""Adds to a run the files of its export."""

from alembic import op

revision = "2026_11_run_files"
down_revision = "2026_11_named_records"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE sync_runs ADD COLUMN files jsonb NOT NULL DEFAULT '[]'")
