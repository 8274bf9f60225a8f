"""Adds to the access log the address, the scope and the districts of a disclosure, and an id that keeps a row from being
written twice."""

from alembic import op

revision = "2026_11_disclosures"
down_revision = "2026_11_runs_under_way"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The rows that there are have none of them."""
    op.execute(
        'ALTER TABLE audit ADD COLUMN address text COLLATE "C", ADD COLUMN scope text COLLATE "C", '
        'ADD COLUMN districts text[] COLLATE "C", ADD COLUMN entry_id uuid'
    )
    op.create_unique_constraint("uq_audit_entry_id", "audit", ["entry_id"])
