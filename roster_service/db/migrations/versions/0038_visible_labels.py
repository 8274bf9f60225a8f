"""Adds the labels that each vendor sees, and the indexes by which their records are read. The upgrade writes the rows."""

from alembic import op

revision = "2026_11_visible_labels"
down_revision = "2026_11_nothing_rendered"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("""
        CREATE TABLE visible_labels (
            vendor_id integer NOT NULL CONSTRAINT fk_visible_labels_vendor_id_vendors
                REFERENCES vendors (id) ON DELETE CASCADE,
            label_id integer NOT NULL,
            without_guardians boolean NOT NULL,
            opens_students boolean NOT NULL,
            opens_teachers boolean NOT NULL,
            key uuid NOT NULL,
            CONSTRAINT pk_visible_labels PRIMARY KEY (vendor_id, label_id)
        )
    """)
    for table in ("courses", "users", "enrollments", "demographics"):
        # The first load makes the indexes of empty tables.
        op.execute(f"""
            DO $$ BEGIN
                IF to_regclass('pk_{table}') IS NOT NULL THEN
                    CREATE INDEX ix_{table}_label_id_sourced_id ON {table} (label_id, sourced_id);
                END IF;
            END $$
        """)
