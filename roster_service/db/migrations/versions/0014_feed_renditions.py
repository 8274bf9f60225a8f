"""Divides the renditions by feed, and indexes the records of each feed."""

from alembic import op

revision = "2026_11_feed_renditions"
down_revision = "2026_11_operators"
branch_labels = None
depends_on = None

RECORDS = ("orgs", "academic_sessions", "courses", "classes", "users", "enrollments", "demographics")


def upgrade() -> None:
    """Until the next sync of a feed, requests make the texts of its records themselves. A first load makes the indexes
    of tables that are empty."""
    op.execute("DROP TABLE rendered_records, renditions")
    op.execute(
        "CREATE UNLOGGED TABLE renditions (id bigint NOT NULL, feed_id integer NOT NULL, "
        'as_of timestamp(3) with time zone NOT NULL, dependency_hash text COLLATE "C" NOT NULL, '
        "is_kept boolean NOT NULL, bytes bigint NOT NULL, CONSTRAINT pk_renditions PRIMARY KEY (id, feed_id))"
    )
    op.execute(
        'CREATE UNLOGGED TABLE rendered_records (rendition_id bigint NOT NULL, sourced_id text COLLATE "C" NOT NULL, '
        'feed_id integer NOT NULL, required_orgs text[] COLLATE "C" NOT NULL, district_id text COLLATE "C", '
        'requires_guardians boolean NOT NULL, body text COLLATE "C" NOT NULL, '
        "CONSTRAINT pk_rendered_records PRIMARY KEY (rendition_id, sourced_id))"
    )
    op.execute("CREATE INDEX ix_rendered_records_feed_id_rendition_id ON rendered_records (feed_id, rendition_id)")
    for table in RECORDS:
        op.execute(
            f"DO $$ BEGIN IF to_regclass('ix_{table}_date_last_modified') IS NOT NULL THEN "
            f"CREATE INDEX ix_{table}_feed_id_date_last_modified ON {table} (feed_id, date_last_modified); "
            "END IF; END $$"
        )
    # Workers of former versions look for the renditions by their key.
    op.execute("UPDATE roster_state SET generation = generation + 1")
