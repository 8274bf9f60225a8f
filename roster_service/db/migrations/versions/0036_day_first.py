"""Adds to a feed the columns whose days have the day first, for deltas that do not show it."""

from alembic import op

revision = "2026_11_day_first"
down_revision = "2026_11_refused_requests"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("""ALTER TABLE feeds ADD COLUMN day_first text[] COLLATE "C" NOT NULL DEFAULT '{}'""")
