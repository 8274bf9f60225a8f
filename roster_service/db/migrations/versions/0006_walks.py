"""Walks: counts and orders that are made once for each roster.

Who serves needs SELECT, INSERT, UPDATE and DELETE on both tables, and nothing of them but that; so does the sync, which
warms them. They have ids of every caller's records: no other role may read them.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds both tables, empty."""
    op.create_table(
        "walks",
        sa.Column("key", sa.LargeBinary(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("total", sa.BigInteger(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("used_at", sa.TIMESTAMP(True), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_walks")),
        prefixes=["UNLOGGED"],
    )
    op.create_index(op.f("ix_walks_used_at"), "walks", ["used_at"])
    op.create_table(
        "walk_chunks",
        sa.Column("walk", sa.LargeBinary(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("ids", postgresql.ARRAY(sa.Text(collation="C")), nullable=False),
        sa.PrimaryKeyConstraint("walk", "number", name=op.f("pk_walk_chunks")),
        prefixes=["UNLOGGED"],
    )
    # Ids are mostly random: compressing them takes time and saves nothing.
    op.execute("ALTER TABLE walk_chunks ALTER COLUMN ids SET STORAGE EXTERNAL")


def downgrade() -> None:
    """Every page is counted and sorted by itself again."""
    op.drop_table("walk_chunks")
    op.drop_table("walks")
