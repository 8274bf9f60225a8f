"""Adds the rows of the access log by day, the numbers of their people, and the view of the rows of both kinds. The
nightly sync makes rows of days of the rows that there are."""

from pathlib import Path

from alembic import op

revision = "2026_11_disclosed_days"
down_revision = "2026_11_school_opens"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8"))
