"""Adds whether a feed is strict."""

from alembic import op

revision = "2026_11_strict"
down_revision = "2026_11_feed_states"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Every feed is lenient at first."""
    op.execute("ALTER TABLE feeds ADD COLUMN strict boolean NOT NULL DEFAULT false")
