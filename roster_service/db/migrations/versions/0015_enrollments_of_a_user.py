"""The planner is told how many enrollments a user has: a sample of pages of a table that lies in the order of its users
sees the same users again and again, and takes them for all there are.

Heeded from the table's next ANALYZE on.
"""

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """About ten enrollments a user, however many users there are."""
    op.execute("ALTER TABLE enrollments ALTER COLUMN user_id SET (n_distinct = -0.1)")


def downgrade() -> None:
    """What a sample says."""
    op.execute("ALTER TABLE enrollments ALTER COLUMN user_id RESET (n_distinct)")
