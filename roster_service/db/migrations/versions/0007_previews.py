"""Adds the previews of held runs."""

from alembic import op

revision = "2026_11_previews"
down_revision = "2026_11_changes"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Runs that are held already have no preview."""
    op.execute("ALTER TABLE sync_runs ADD COLUMN preview jsonb")
