"""Applies `evict_orderings`, which evicts from the vendors that have most."""

revision = "2026_11_ordering_shares"
down_revision = "2026_11_server"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Changes no table: an upgrade applies the functions after its revisions."""
