"""Adds the records that each rejected row names."""

from alembic import op

revision = "2026_11_named_records"
down_revision = "2026_11_quality_counts"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Rows of earlier runs name none. Every search is inside a run, of which the primary key finds the rows, so there
    is no further index."""
    op.execute("ALTER TABLE sync_refusals ADD COLUMN records jsonb DEFAULT '[]' NOT NULL")
