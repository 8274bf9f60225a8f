"""What a run has put up with, or done by itself, is remembered with it."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Of earlier runs nothing is known."""
    kind = ARRAY(sa.Text(collation="C"))
    op.add_column("sync_runs", sa.Column("notices", kind, server_default=sa.text("'{}'"), nullable=False))


def downgrade() -> None:
    """Takes the column away."""
    op.drop_column("sync_runs", "notices")
