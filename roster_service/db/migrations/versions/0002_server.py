"""Adds the server that published the roster, so that a restored roster is recognized."""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_server"
down_revision = "2026_11_schema"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The next publication fills the column; until then it is NULL, and tells nothing."""
    op.add_column("roster_state", sa.Column("server", sa.Text(collation="C")))
