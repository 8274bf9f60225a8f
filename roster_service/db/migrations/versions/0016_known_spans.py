"""What is known of lines that follow each other is kept beside their marks."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Of what was loaded before, no spans are known: the next night looks at every line."""
    op.add_column("feed_lines", sa.Column("spans", sa.LargeBinary(), server_default=sa.text("''"), nullable=False))
    op.execute("ALTER TABLE feed_lines ALTER COLUMN spans SET STORAGE EXTERNAL")


def downgrade() -> None:
    """Takes the column away."""
    op.drop_column("feed_lines", "spans")
