"""Adds the states of feeds."""

from alembic import op

revision = "2026_11_feed_states"
down_revision = "2026_11_guards"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The default is a constant, so the table is not rewritten."""
    op.execute(
        "ALTER TABLE feeds ADD COLUMN state text COLLATE \"C\" NOT NULL DEFAULT 'added', "
        "ADD CONSTRAINT ck_feeds_state CHECK (state IN ('tried', 'added', 'removed'))"
    )
