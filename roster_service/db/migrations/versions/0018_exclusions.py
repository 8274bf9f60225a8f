"""Adds the people whom the sync leaves out of every export."""

from alembic import op

revision = "2026_11_exclusions"
down_revision = "2026_11_credential_ends"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The table begins empty."""
    op.execute(
        'CREATE TABLE exclusions (id_hash bytea NOT NULL, kind text COLLATE "C" NOT NULL, key_check bytea NOT NULL, '
        'sourced_id text COLLATE "C", at timestamp(3) with time zone DEFAULT now() NOT NULL, '
        "CONSTRAINT pk_exclusions PRIMARY KEY (id_hash), "
        "CONSTRAINT ck_exclusions_kind CHECK (kind IN ('erased', 'hidden')), "
        "CONSTRAINT ck_exclusions_erased_id CHECK (kind = 'hidden' OR sourced_id IS NULL))"
    )
