"""Gives runs the outcomes that the nightly sync announces, and what a person needs to know of an export: who loaded it,
and when it was written."""

from alembic import op

revision = "2026_11_outcomes"
down_revision = "2026_11_name_words"
branch_labels = None
depends_on = None

OUTCOMES = (
    *("running", "done", "unchanged", "partial", "stale", "held", "approved", "discarded"),
    *("refused", "missing", "incomplete", "failed", "interrupted"),
)


def upgrade() -> None:
    """A run with rejected rows was `done`, although the roster was not that of its export."""
    words = ", ".join(f"'{word}'" for word in OUTCOMES)
    op.execute("ALTER TABLE sync_runs DROP CONSTRAINT ck_sync_runs_outcome")
    op.execute(f"ALTER TABLE sync_runs ADD CONSTRAINT ck_sync_runs_outcome CHECK (outcome IN ({words}))")
    op.execute("UPDATE sync_runs SET outcome = 'partial' WHERE outcome IN ('done', 'unchanged') AND refused > 0")
    op.execute('ALTER TABLE sync_runs ADD COLUMN actor text COLLATE "C"')
    op.execute("ALTER TABLE sync_runs ADD COLUMN written_at timestamptz(3)")
    op.execute('ALTER TABLE roster_state ADD COLUMN sync_channels text[] COLLATE "C"')
