"""Sights: which orgs a list of grants opens, kept for as long as the roster stays as it is."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

KEY = "md5(concat_ws(' ', districts::text, schools::text))"
# What a list of grants opens, of one roster: in one statement, so that the orgs are those of the revision beside them.
OPENED = """
    SELECT state.revision, found.granted::text AS granted_orgs, (found.granted || found.above)::text AS shown_orgs,
        md5(concat_ws(' ', found.granted::text, found.above::text)) AS hash
    FROM roster_state state CROSS JOIN (
        SELECT ARRAY(
            SELECT sourced_id FROM orgs WHERE district_id = ANY (districts)
            UNION SELECT sourced_id FROM orgs WHERE sourced_id = ANY (schools) ORDER BY 1
        ) AS granted, ARRAY(
            SELECT DISTINCT district_id FROM orgs WHERE sourced_id = ANY (schools) AND district_id IS NOT NULL ORDER BY 1
        ) AS above
    ) found
"""
# As in 0007, but for what is kept: that is told as it stands.
SET_SIGHT = """
CREATE OR REPLACE FUNCTION set_sight(districts text[], schools text[], guardians boolean) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
DECLARE
    sight record;
BEGIN
    SELECT kept.* INTO sight FROM sights kept JOIN roster_state state ON state.revision = kept.revision
    WHERE kept.key = {key};
    IF NOT FOUND THEN
        SELECT opened.* INTO sight FROM ({opened}) opened;
    END IF;
    PERFORM set_config('roster.granted_orgs', sight.granted_orgs, true),
        set_config('roster.granted_districts', districts::text, true),
        set_config('roster.shown_orgs', sight.shown_orgs, true),
        set_config('roster.guardians', guardians::text, true);
    RETURN md5(concat_ws(' ', sight.hash, guardians::text));
END
$$
"""
# Whoever serves may have a sight kept, and nothing else: what it is, follows from the roster.
KEEP_SIGHT = """
CREATE FUNCTION keep_sight(districts text[], schools text[]) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
    DELETE FROM sights kept WHERE kept.revision < (SELECT state.revision FROM roster_state state);
    INSERT INTO sights (key, revision, granted_orgs, shown_orgs, hash) SELECT {key}, opened.* FROM ({opened}) opened
    ON CONFLICT (key) DO UPDATE SET revision = excluded.revision, granted_orgs = excluded.granted_orgs,
        shown_orgs = excluded.shown_orgs, hash = excluded.hash
    WHERE sights.revision < excluded.revision;
$$
"""
# As 0007 left it.
PREVIOUS = """
CREATE OR REPLACE FUNCTION set_sight(districts text[], schools text[], guardians boolean) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
DECLARE
    granted text[] := ARRAY(
        SELECT sourced_id FROM orgs WHERE district_id = ANY (districts)
        UNION SELECT sourced_id FROM orgs WHERE sourced_id = ANY (schools) ORDER BY 1
    );
    above text[] := ARRAY(
        SELECT DISTINCT district_id FROM orgs WHERE sourced_id = ANY (schools) AND district_id IS NOT NULL ORDER BY 1
    );
BEGIN
    PERFORM set_config('roster.granted_orgs', granted::text, true);
    PERFORM set_config('roster.granted_districts', districts::text, true);
    PERFORM set_config('roster.shown_orgs', (granted || above)::text, true);
    PERFORM set_config('roster.guardians', guardians::text, true);
    RETURN md5(concat_ws(' ', granted::text, above::text, guardians::text));
END
$$
"""


def upgrade() -> None:
    """Adds the table, empty."""
    text = sa.Text(collation="C")
    op.create_table(
        "sights",
        sa.Column("key", text, nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("granted_orgs", text, nullable=False),
        sa.Column("shown_orgs", text, nullable=False),
        sa.Column("hash", text, nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_sights")),
        prefixes=["UNLOGGED"],
    )
    parts = {"schema": _schema(), "key": KEY, "opened": OPENED}
    op.execute(SET_SIGHT.format(**parts))
    op.execute(KEEP_SIGHT.format(**parts))
    op.execute("REVOKE ALL ON FUNCTION keep_sight(text[], text[]) FROM PUBLIC")


def downgrade() -> None:
    """Back to working it out each time."""
    op.execute("DROP FUNCTION keep_sight(text[], text[])")
    op.execute(PREVIOUS.format(schema=_schema()))
    op.drop_table("sights")


def _schema() -> str:
    return str(op.get_bind().scalar(sa.text("SELECT quote_ident(current_schema())")))
