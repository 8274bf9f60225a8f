"""Documents: records kept as JSON texts, behind row-level security of their own."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

# Worded as the policies of 0004, and for the same reasons. A district that was granted whole says for each document in
# one comparison what the list of all its orgs would say; the subqueries are evaluated once a statement, and the list not
# at all where it is not needed.
DISTRICTS = "(SELECT NULLIF(current_setting('roster.granted_districts', true), '')::text[])::text[]"
ORGS = "(SELECT NULLIF(current_setting('roster.granted_orgs', true), '')::text[])::text[]"
GUARDIANS = "(SELECT NULLIF(current_setting('roster.guardians', true), '')::boolean)"
# A document of another roster is nobody's: who was granted what of it was another question.
STANDING = "(SELECT held.id FROM shelves held JOIN roster_state state ON state.revision = held.revision)"
POLICY = f"""
CREATE POLICY visible ON documents FOR SELECT USING (CASE WHEN
    (district_id = ANY ({DISTRICTS}) OR needs <@ {ORGS})
    AND (NOT needs_guardians OR {GUARDIANS}) AND shelf IN {STANDING}
THEN 1 ELSE 0 END <> 0)
"""

# As in 0004, but for the districts, which are told as well.
SET_SIGHT = """
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
    PERFORM set_config('roster.granted_orgs', granted::text, true);{told}
    PERFORM set_config('roster.shown_orgs', (granted || above)::text, true);
    PERFORM set_config('roster.guardians', guardians::text, true);
    RETURN md5(concat_ws(' ', granted::text, above::text, guardians::text));
END
$$
"""
TOLD = "\n    PERFORM set_config('roster.granted_districts', districts::text, true);"


def upgrade() -> None:
    """Adds both tables, empty, and the setting that their policy reads."""
    text = sa.Text(collation="C")
    op.create_table(
        "shelves",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("key", text, nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("as_of", postgresql.TIMESTAMP(True, 3), nullable=False),
        sa.Column("ground", text, nullable=False),
        sa.Column("reached", text),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("used_at", sa.TIMESTAMP(True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_shelves")),
        sa.UniqueConstraint("key", name=op.f("uq_shelves_key")),
        prefixes=["UNLOGGED"],
    )
    op.create_table(
        "documents",
        sa.Column("shelf", sa.Integer(), nullable=False),
        sa.Column("sourced_id", text, nullable=False),
        sa.Column("needs", postgresql.ARRAY(text), nullable=False),
        sa.Column("district_id", text),
        sa.Column("needs_guardians", sa.Boolean(), nullable=False),
        sa.Column("body", text, nullable=False),
        sa.PrimaryKeyConstraint("shelf", "sourced_id", name=op.f("pk_documents")),
        prefixes=["UNLOGGED"],
    )
    op.execute(POLICY)
    op.execute("ALTER TABLE documents ENABLE ROW LEVEL SECURITY")
    op.execute(SET_SIGHT.format(schema=_schema(), told=TOLD))


def downgrade() -> None:
    """Every page is made of the records again."""
    op.execute(SET_SIGHT.format(schema=_schema(), told=""))
    op.drop_table("documents")
    op.drop_table("shelves")


def _schema() -> str:
    return str(op.get_bind().scalar(sa.text("SELECT quote_ident(current_schema())")))
