"""Adds pulls: which revision of a collection a caller is reading page by page."""

from alembic import op

revision = "2026_11_pulls"
down_revision = "2026_11_words"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Until its next first page, a caller has no pull."""
    op.execute(
        'CREATE TABLE pulls (caller text COLLATE "C" NOT NULL, query bytea NOT NULL, revision bigint NOT NULL, '
        "as_of timestamp(3) with time zone NOT NULL, deletions_since timestamp(3) with time zone NOT NULL, "
        "begun_at timestamp with time zone NOT NULL, ends_at timestamp with time zone NOT NULL, "
        "CONSTRAINT pk_pulls PRIMARY KEY (caller, query, revision))"
    )
