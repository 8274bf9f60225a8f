"""Adds to each enrollment whether its school alone opens it, which its label tells already."""

from alembic import op

revision = "2026_11_school_opens"
down_revision = "2026_11_visible_labels"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE enrollments ADD COLUMN school_opens boolean")
    # The upgrade labels the enrollments that have no label yet.
    op.execute("""
        UPDATE enrollments SET school_opens = label.all_orgs = label.any_orgs AND cardinality(label.all_orgs) = 1
        FROM visibility_labels label WHERE label.id = enrollments.label_id
    """)
