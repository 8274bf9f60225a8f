"""Adds to the access log the people whose records a disclosure had, as keyed hashes, and to rendered records the person
whose record it is, if the record has another id."""

from alembic import op

revision = "2026_11_disclosed_people"
down_revision = "2026_11_renderer"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The rows that there are have none of them: the next sync makes the renditions anew, under other ids."""
    op.execute("ALTER TABLE audit ADD COLUMN people bytea")
    op.execute('ALTER TABLE rendered_records ADD COLUMN person_id text COLLATE "C"')
