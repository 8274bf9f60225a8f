"""Logs orderings and rendered records, which a hot standby could not read otherwise, nor a server after a crash."""

from alembic import op

revision = "2026_11_logged"
down_revision = "2026_11_signed_requests"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The statements write each table anew, and keep its rows."""
    for table in ("orderings", "ordering_chunks", "renditions", "rendered_records"):
        op.execute(f"ALTER TABLE {table} SET LOGGED")
