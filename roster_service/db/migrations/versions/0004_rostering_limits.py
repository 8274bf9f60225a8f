"""Adds each vendor's own limits on the rostering interface, and applies `admit_client`, which takes a slot."""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_rostering_limits"
down_revision = "2026_11_ordering_shares"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """A version that does not know the columns leaves them empty: they are the defaults."""
    for name in ("rostering_per_second", "rostering_burst", "rostering_at_once"):
        op.add_column("vendors", sa.Column(name, sa.Integer()))
