"""Applies `refresh_visible_orgs`, from which vendor 0 has gone: `refresh_renderer` writes its rows."""

revision = "2026_11_renderer"
down_revision = "2026_11_operator_sessions"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Changes no table: an upgrade applies the functions after its revisions."""
