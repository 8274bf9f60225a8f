"""Adds the counters of refused requests by cause."""

from alembic import op

revision = "2026_11_refused_requests"
down_revision = "2026_11_outcomes"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The counters begin empty."""
    op.execute(
        """
        CREATE TABLE refused_requests (
            vendor_id integer NOT NULL,
            day date NOT NULL,
            caller text COLLATE "C" NOT NULL,
            status integer NOT NULL,
            cause text COLLATE "C" NOT NULL,
            requests bigint NOT NULL,
            last_at timestamptz(3) NOT NULL,
            address text COLLATE "C",
            CONSTRAINT pk_refused_requests PRIMARY KEY (vendor_id, day, caller, status, cause)
        )
        """
    )
