"""Adds the causes of rejected rows: their groups to the runs, and the id and the cause to each rejected row."""

from alembic import op

revision = "2026_11_causes"
down_revision = "2026_11_rostering_limits"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """All columns have a default that PostgreSQL does not write into the rows, so the tables are not rewritten."""
    op.execute("ALTER TABLE sync_runs ADD COLUMN causes jsonb NOT NULL DEFAULT '[]'")
    op.execute(
        'ALTER TABLE sync_refusals ADD COLUMN sourced_id text COLLATE "C", ADD COLUMN cause integer, '
        "ADD COLUMN is_consequence boolean NOT NULL DEFAULT false"
    )
