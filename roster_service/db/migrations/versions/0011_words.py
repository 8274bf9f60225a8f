"""Adds the mapping of words of a feed."""

from alembic import op

revision = "2026_11_words"
down_revision = "2026_11_strict"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The column may be NULL, so the table is not rewritten."""
    op.execute('ALTER TABLE feeds ADD COLUMN words text COLLATE "C"')
