"""The tables say which versions of the service can serve them."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """They are of the first generation."""
    op.add_column("roster_state", sa.Column("generation", sa.Integer(), server_default=sa.text("1"), nullable=False))


def downgrade() -> None:
    """Takes the column away."""
    op.drop_column("roster_state", "generation")
