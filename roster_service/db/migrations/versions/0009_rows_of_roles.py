"""The ids of the rows that roles are, and what was taken back from users that are gone."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the columns, empty. No export is known any more: the next one is read, so that the ids are learnt."""
    op.add_column("user_roles", sa.Column("row_id", sa.Text(collation="C")))
    op.add_column("user_roles", sa.Column("taken_back", sa.Boolean()))
    op.add_column("user_profiles", sa.Column("taken_back", sa.Boolean()))
    op.execute("UPDATE feeds SET last_digest = NULL")


def downgrade() -> None:
    """Forgets the ids."""
    op.drop_column("user_profiles", "taken_back")
    op.drop_column("user_roles", "taken_back")
    op.drop_column("user_roles", "row_id")
