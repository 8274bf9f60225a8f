"""Adds what guards a feed against a bad night: the limit of rejected rows, the marker of a complete export, the pause,
and the problem that was announced last."""

from alembic import op

revision = "2026_11_guards"
down_revision = "2026_11_previews"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """All columns may be NULL, so the table is not rewritten."""
    op.execute(
        'ALTER TABLE feeds ADD COLUMN hold_rejected_percent smallint, ADD COLUMN marker text COLLATE "C", '
        'ADD COLUMN pause_from date, ADD COLUMN pause_until date, ADD COLUMN pause_reason text COLLATE "C", '
        'ADD COLUMN alerted text COLLATE "C"'
    )
