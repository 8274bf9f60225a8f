"""A run has its row from its start: until it ends it is `running`, and one whose process was killed is `interrupted`. Of
the export of a held run, the digest is kept."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

BEFORE = "'done', 'unchanged', 'held', 'approved', 'discarded', 'refused', 'failed'"
NAME = "ck_sync_runs_outcome"


def _allow(outcomes: str) -> None:
    op.drop_constraint(op.f(NAME), "sync_runs")
    op.create_check_constraint(op.f(NAME), "sync_runs", f"outcome IN ({outcomes})")


def upgrade() -> None:
    """Runs of before have all ended. One that is held cannot be approved any more: of its export there is no digest."""
    op.alter_column("sync_runs", "finished_at", nullable=True)
    _allow(f"'running', {BEFORE}, 'interrupted'")
    op.add_column("sync_runs", sa.Column("kept_digest", sa.LargeBinary(), nullable=True))


def downgrade() -> None:
    """Runs without an end have failed when they began."""
    op.drop_column("sync_runs", "kept_digest")
    op.execute("UPDATE sync_runs SET outcome = 'failed' WHERE outcome IN ('running', 'interrupted')")
    op.execute("UPDATE sync_runs SET finished_at = started_at WHERE finished_at IS NULL")
    op.alter_column("sync_runs", "finished_at", nullable=False)
    _allow(BEFORE)
