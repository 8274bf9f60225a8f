"""Adds the end of a client secret, and the last use of each API key and client."""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_credential_ends"
down_revision = "2026_11_logged"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The secrets that there are have no end. A use is known from the next request on."""
    op.add_column("oauth_clients", sa.Column("secret_expires_at", sa.TIMESTAMP(timezone=True)))
    op.execute("ALTER TABLE oauth_clients ALTER COLUMN secret_expires_at TYPE timestamp(3) with time zone")
    op.execute(
        'CREATE TABLE last_uses (vendor_id integer NOT NULL, caller text COLLATE "C" NOT NULL, '
        'used_at timestamp(3) with time zone NOT NULL, address text COLLATE "C", '
        "CONSTRAINT pk_last_uses PRIMARY KEY (vendor_id, caller))"
    )
