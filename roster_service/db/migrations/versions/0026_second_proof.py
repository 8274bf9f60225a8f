"""Adds what proves an operator at a login beside the password: one-time codes, and the account of a directory."""

from alembic import op

revision = "2026_11_second_proof"
down_revision = "2026_11_roster_search"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """No operator has one yet."""
    op.execute(
        "ALTER TABLE operators ADD COLUMN code_key_sealed bytea, ADD COLUMN code_step bigint, "
        'ADD COLUMN directory_subject text COLLATE "C"'
    )
