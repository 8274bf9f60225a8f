"""Adds the counts of data quality."""

from alembic import op

revision = "2026_11_quality_counts"
down_revision = "2026_11_withheld"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The next nightly sync counts first."""
    op.execute(
        """
        CREATE TABLE quality_counts (
            feed_id integer NOT NULL,
            revision bigint NOT NULL,
            counted_at timestamp(3) with time zone DEFAULT now() NOT NULL,
            totals jsonb NOT NULL,
            schools jsonb,
            CONSTRAINT pk_quality_counts PRIMARY KEY (feed_id, revision),
            CONSTRAINT fk_quality_counts_feed_id_feeds FOREIGN KEY (feed_id) REFERENCES feeds (id)
        )
        """
    )
