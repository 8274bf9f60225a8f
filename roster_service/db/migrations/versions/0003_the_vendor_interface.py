"""API keys, passwords, flags, throttling, usage and the access log."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

# One call is one hit, however many arrive at once: they wait for the counter's row. The hit is let through when the
# one that stands `most` places before it is older than the window, so no window ever has more than `most`.
TAKE_HITS = """
CREATE FUNCTION take_hits(name text, most integer, seconds double precision, amount integer) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    taken bigint;
    instant timestamptz;
BEGIN
    IF amount > most THEN
        RETURN false;
    END IF;
    SELECT hits INTO taken FROM rate_windows WHERE key = name FOR UPDATE;
    IF NOT FOUND THEN
        INSERT INTO rate_windows AS made (key, hits, last_hit) VALUES (name, 0, clock_timestamp())
        ON CONFLICT (key) DO UPDATE SET hits = made.hits RETURNING hits INTO taken;
    END IF;
    instant := clock_timestamp();
    IF EXISTS (
        SELECT FROM rate_hits
        WHERE key = name AND slot = (taken + amount - 1) % most AND hit_at > instant - make_interval(secs => seconds)
    ) THEN
        RETURN false;
    END IF;
    INSERT INTO rate_hits (key, slot, hit_at)
    SELECT name, (taken + number) % most, instant FROM generate_series(0, amount - 1) AS number
    ON CONFLICT (key, slot) DO UPDATE SET hit_at = excluded.hit_at;
    UPDATE rate_windows SET hits = taken + amount, last_hit = instant WHERE key = name;
    RETURN true;
END
$$
"""
# A full window is told by one slot; only one that is not full is counted.
READ_WINDOW = """
CREATE FUNCTION read_window(name text, most integer, seconds double precision, OUT oldest timestamptz, OUT hits integer)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    edge timestamptz := clock_timestamp() - make_interval(secs => seconds);
BEGIN
    SELECT hit_at, most INTO oldest, hits FROM rate_hits
    WHERE key = name AND hit_at > edge
    AND slot = (SELECT window_of.hits % most FROM rate_windows AS window_of WHERE window_of.key = name);
    IF NOT FOUND THEN
        SELECT min(hit_at), count(*) INTO oldest, hits FROM rate_hits WHERE key = name AND hit_at > edge;
    END IF;
    oldest := coalesce(oldest, clock_timestamp());
END
$$
"""


def upgrade() -> None:
    """Adds what the vendor interface needs; the vendors that are there get no key and no password."""
    text, stamp, moment = sa.Text(collation="C"), postgresql.TIMESTAMP(timezone=True, precision=3), sa.TIMESTAMP(True)
    op.add_column("vendors", sa.Column("password_hash", text))
    op.add_column("vendors", sa.Column("flags", postgresql.ARRAY(text), server_default=sa.text("'{}'"), nullable=False))
    op.add_column("vendors", sa.Column("requests_per_second", sa.Integer()))
    op.add_column("vendors", sa.Column("burst", sa.Integer()))
    op.add_column("vendors", sa.Column("requests_per_day", sa.Integer()))
    op.create_table(
        "api_keys",
        sa.Column("key_hash", sa.LargeBinary(), nullable=False),
        sa.Column("vendor_id", sa.Integer(), nullable=False),
        sa.Column("prefix", text, nullable=False),
        sa.Column("created_at", stamp, server_default=sa.text("now()"), nullable=False),
        sa.Column("expires_at", stamp),
        sa.ForeignKeyConstraint(["vendor_id"], ["vendors.id"], name=op.f("fk_api_keys_vendor_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("key_hash", name=op.f("pk_api_keys")),
    )
    op.create_index(op.f("ix_api_keys_vendor_id"), "api_keys", ["vendor_id"])
    op.create_table(
        "rate_windows",
        sa.Column("key", text, nullable=False),
        sa.Column("hits", sa.BigInteger(), nullable=False),
        sa.Column("last_hit", moment, nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_rate_windows")),
        prefixes=["UNLOGGED"],
    )
    op.create_table(
        "rate_hits",
        sa.Column("key", text, nullable=False),
        sa.Column("slot", sa.Integer(), nullable=False),
        sa.Column("hit_at", moment, nullable=False),
        sa.PrimaryKeyConstraint("key", "slot", name=op.f("pk_rate_hits")),
        prefixes=["UNLOGGED"],
    )
    op.create_table(
        "usage",
        sa.Column("vendor_id", sa.Integer(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("endpoint", text, nullable=False),
        sa.Column("status_class", text, nullable=False),
        sa.Column("requests", sa.BigInteger(), nullable=False),
        sa.Column("records", sa.BigInteger(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("vendor_id", "day", "endpoint", "status_class", name=op.f("pk_usage")),
    )
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger(), sa.Identity(), nullable=False),
        sa.Column("at", stamp, nullable=False),
        sa.Column("vendor_id", sa.Integer(), nullable=False),
        sa.Column("caller", text, nullable=False),
        sa.Column("method", text, nullable=False),
        sa.Column("path", text, nullable=False),
        sa.Column("filter", text),
        sa.Column("records", sa.Integer(), nullable=False),
        sa.Column("request_id", text, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
    )
    op.create_index(op.f("ix_audit_vendor_id_at"), "audit", ["vendor_id", "at"])
    op.create_index(op.f("ix_audit_at"), "audit", ["at"])
    op.execute(TAKE_HITS)
    op.execute(READ_WINDOW)


def downgrade() -> None:
    """Back to the rostering interface alone."""
    op.execute("DROP FUNCTION read_window(text, integer, double precision)")
    op.execute("DROP FUNCTION take_hits(text, integer, double precision, integer)")
    for table in ("audit", "usage", "rate_hits", "rate_windows", "api_keys"):
        op.drop_table(table)
    for column in ("requests_per_day", "burst", "requests_per_second", "flags", "password_hash"):
        op.drop_column("vendors", column)
