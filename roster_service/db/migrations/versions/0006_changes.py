"""Adds the changes of runs: the fields of records before and after."""

from alembic import op

revision = "2026_11_changes"
down_revision = "2026_11_causes"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Runs of before have no changes stored."""
    op.execute("ALTER TABLE sync_runs ADD COLUMN has_changes boolean NOT NULL DEFAULT false")
    op.execute(
        'CREATE TABLE sync_changes (run_id bigint NOT NULL, type text COLLATE "C" NOT NULL, '
        'sourced_id text COLLATE "C" NOT NULL, change text COLLATE "C" NOT NULL, '
        "previous_stamp timestamp(3) with time zone NOT NULL, fields jsonb, "
        "CONSTRAINT fk_sync_changes_run_id FOREIGN KEY (run_id) REFERENCES sync_runs (id) ON DELETE CASCADE)"
    )
    op.execute("CREATE INDEX ix_sync_changes_run_id ON sync_changes (run_id)")
