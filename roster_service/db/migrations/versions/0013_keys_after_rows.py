"""Roster tables without rows lose their primary keys: the first load makes them, as it makes the other indexes."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

KEYS = {
    **dict.fromkeys(
        ("orgs", "academic_sessions", "courses", "classes", "users", "enrollments", "demographics"), ("sourced_id",)
    ),
    "class_terms": ("class_id", "ordinal"),
    "user_roles": ("user_id", "ordinal"),
    "user_profiles": ("user_id", "profile_id"),
    "user_agents": ("user_id", "ordinal"),
}


def upgrade() -> None:
    """Drops the keys of empty tables; their columns stay NOT NULL."""
    for table in KEYS:
        if not _has_rows(table):
            op.drop_constraint(f"pk_{table}", table, type_="primary")


def downgrade() -> None:
    """Makes every key a constraint again."""
    for table, columns in KEYS.items():
        name = f"pk_{table}"
        if sa.inspect(op.get_bind()).get_pk_constraint(table)["name"] is None:
            op.execute(f"DROP INDEX IF EXISTS {name}")
            op.create_primary_key(name, table, list(columns))


def _has_rows(table: str) -> bool:
    return bool(op.get_bind().scalar(sa.select(sa.exists(sa.select(sa.text("1")).select_from(sa.table(table))))))
