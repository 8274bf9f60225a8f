"""Gives each feed a state of its own, and each vendor the state of the feeds that it sees."""

from alembic import op

revision = "2026_11_feed_revisions"
down_revision = "2026_11_exclusions"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Until the next sync of a feed, it has the state of the roster. Orderings are made again, and pulls begin again.

    The hashes of visible sets are of another form afterwards, so these are only known not to be equal to any.
    """
    op.execute("TRUNCATE orderings, ordering_chunks, pulls")
    op.execute(
        "ALTER TABLE feeds ADD COLUMN revision bigint DEFAULT 0 NOT NULL, "
        "ADD COLUMN as_of timestamp(3) with time zone DEFAULT 'epoch' NOT NULL, "
        "ADD COLUMN deletions_since timestamp(3) with time zone DEFAULT 'epoch' NOT NULL"
    )
    op.execute(
        "UPDATE feeds SET revision = state.revision, as_of = state.as_of, deletions_since = state.deletions_since "
        "FROM roster_state state"
    )
    op.execute(
        "CREATE TABLE visible_feeds (vendor_id integer NOT NULL, feed_id integer NOT NULL, key uuid NOT NULL, "
        'visible_set text COLLATE "C" NOT NULL, revision bigint NOT NULL, as_of timestamp(3) with time zone NOT NULL, '
        "deletions_since timestamp(3) with time zone NOT NULL, "
        "CONSTRAINT pk_visible_feeds PRIMARY KEY (vendor_id, feed_id), "
        "CONSTRAINT fk_visible_feeds_vendor_id_vendors FOREIGN KEY (vendor_id) REFERENCES vendors (id) "
        "ON DELETE CASCADE)"
    )
    op.execute("CREATE INDEX ix_visible_feeds_key_visible_set ON visible_feeds (key, visible_set)")
    op.execute(
        "INSERT INTO visible_feeds SELECT vendor.id, seen.feed_id, vendor.visibility_key, gen_random_uuid()::text, "
        "state.revision, state.as_of, state.deletions_since FROM vendors vendor CROSS JOIN roster_state state "
        "CROSS JOIN LATERAL (SELECT DISTINCT org.feed_id FROM visible_orgs org WHERE org.vendor_id = vendor.id "
        "UNION SELECT 0) seen"
    )
    op.execute("ALTER TABLE vendors DROP COLUMN visible_set")
    op.execute(
        "ALTER TABLE orderings ADD COLUMN feed_id integer NOT NULL, ALTER COLUMN bytes DROP NOT NULL, "
        "DROP CONSTRAINT uq_orderings_query_visible_set_revision, "
        "ADD CONSTRAINT uq_orderings_query_feed_id_visible_set_revision UNIQUE (query, feed_id, visible_set, revision)"
    )
    op.execute("ALTER TABLE pulls ADD COLUMN feed_ids integer[] NOT NULL, ADD COLUMN feed_revisions bigint[] NOT NULL")
