"""Finds the runs that are under way, of which there may be several."""

from alembic import op

revision = "2026_11_runs_under_way"
down_revision = "2026_11_feed_revisions"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The runs of years do not slow the search."""
    op.execute("CREATE INDEX ix_sync_runs_running ON sync_runs (feed_id) WHERE outcome = 'running'")
