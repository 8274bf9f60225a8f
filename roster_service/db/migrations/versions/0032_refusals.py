"""Applies `admit_client`, which admits no vendor without a grant, and gives the counting role the runs of feeds that
`/status` shows."""

revision = "2026_11_refusals"
down_revision = "2026_11_labels"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Changes no table: an upgrade applies the functions and the rights of roles after its revisions."""
