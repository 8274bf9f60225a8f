"""Adds the salts of clients that sign requests, and the nonces of these requests; applies `admit_client`."""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_signed_requests"
down_revision = "2026_11_feed_renditions"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """No client may sign requests until one is added for it."""
    for name in ("secret_salt", "previous_secret_salt"):
        op.add_column("oauth_clients", sa.Column(name, sa.LargeBinary()))
    op.execute(
        'CREATE TABLE oauth1_nonces (stamp bigint NOT NULL, client_id text COLLATE "C" NOT NULL, '
        'nonce text COLLATE "C" NOT NULL, CONSTRAINT pk_oauth1_nonces PRIMARY KEY (stamp, client_id, nonce))'
    )
