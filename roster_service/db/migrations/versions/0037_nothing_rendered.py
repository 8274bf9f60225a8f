"""Removes the stored texts of records, and the rows of `visible_orgs` with which they were made: the service makes each
text when it is asked for."""

from alembic import op

revision = "2026_11_nothing_rendered"
down_revision = "2026_11_day_first"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("DROP TABLE rendered_records")
    op.execute("DROP TABLE renditions")
    op.execute("DELETE FROM visible_orgs WHERE vendor_id = 0")
    # Older versions read these tables.
    op.execute("UPDATE roster_state SET generation = generation + 1")
