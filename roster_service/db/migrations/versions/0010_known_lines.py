"""The marks of the lines that each feed's records were last made of."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the table, empty: the next night stages all lines."""
    op.create_table(
        "feed_lines",
        sa.Column("feed_id", sa.Integer(), nullable=False),
        sa.Column("file", sa.Text(collation="C"), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("marks", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["feed_id"], ["feeds.id"], name=op.f("fk_feed_lines_feed_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("feed_id", "file", "number", name=op.f("pk_feed_lines")),
        prefixes=["UNLOGGED"],
    )
    # Marks are as random as numbers get: compressing them takes time and saves nothing.
    op.execute("ALTER TABLE feed_lines ALTER COLUMN marks SET STORAGE EXTERNAL")


def downgrade() -> None:
    """Every night stages all lines again."""
    op.drop_table("feed_lines")
