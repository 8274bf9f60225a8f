"""Adds the fields that are withheld from a vendor, and from all vendors without a list of their own. The result of
`admit_key_holder` has the list."""

from alembic import op

revision = "2026_11_withheld"
down_revision = "2026_11_second_proof"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nothing is withheld at first. An older version would show every field, so it must not serve these tables."""
    op.execute('ALTER TABLE vendors ADD COLUMN withheld text[] COLLATE "C"')
    op.execute(
        "CREATE TABLE vendor_defaults (singleton boolean DEFAULT true NOT NULL, "
        "withheld text[] COLLATE \"C\" DEFAULT '{}' NOT NULL, "
        "CONSTRAINT pk_vendor_defaults PRIMARY KEY (singleton), "
        "CONSTRAINT ck_vendor_defaults_singleton CHECK (singleton))"
    )
    op.execute("INSERT INTO vendor_defaults DEFAULT VALUES")
    op.execute("UPDATE roster_state SET generation = generation + 1")
    op.execute("DROP FUNCTION IF EXISTS admit_key_holder(bytea, boolean)")
