"""Fingerprints of exported rows, and the indexes of the roster as the first load makes them."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

ROSTER = ("orgs", "academic_sessions", "courses", "classes", "users", "enrollments", "demographics")
# Indexes that go, and what takes their place in a roster that has rows; an empty one gets all of its indexes from the
# first load.
REPLACED: tuple[tuple[str, str, tuple[str, ...], tuple[str, ...] | None], ...] = (
    *((f"ix_{table}_feed_id", table, ("feed_id",), None) for table in ROSTER),
    *(
        (
            f"ix_{table}_date_last_modified_sourced_id",
            table,
            ("date_last_modified", "sourced_id"),
            ("date_last_modified",),
        )
        for table in ROSTER
    ),
    ("ix_enrollments_class_id_role_user_id", "enrollments", ("class_id", "role", "user_id"), ("class_id",)),
    ("ix_enrollments_user_id_role_class_id", "enrollments", ("user_id", "role", "class_id"), ("user_id",)),
)
KEPT: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("academic_sessions", ("parent_id",)),
    ("class_terms", ("session_id", "class_id")),
    ("classes", ("course_id", "sourced_id")),
    ("classes", ("school_id", "sourced_id")),
    ("courses", ("org_id", "sourced_id")),
    ("enrollments", ("school_id", "sourced_id")),
    ("orgs", ("district_id",)),
    ("orgs", ("parent_id",)),
    ("user_agents", ("agent_id",)),
    ("user_roles", ("org_id", "role", "user_id")),
    ("user_roles", ("role", "user_id")),
    ("users", ("email",)),
    ("users", ("family_name", "sourced_id")),
    ("users", ("identifier",)),
    ("users", ("username",)),
)


def upgrade() -> None:
    """Adds the columns; a roster without rows loses its indexes, another one gets the new ones at once."""
    for table in ROSTER:
        op.add_column(table, sa.Column("fingerprint", sa.BigInteger()))
    op.add_column("feeds", sa.Column("last_digest", sa.LargeBinary()))
    op.add_column("feeds", sa.Column("fingerprinted", sa.Boolean(), server_default=sa.text("false"), nullable=False))
    for name, table, _, new in REPLACED:
        op.drop_index(name, table)
        if new and _has_rows(table):
            op.create_index(_name(table, new), table, list(new))
    for table, columns in KEPT:
        if not _has_rows(table):
            op.drop_index(_name(table, columns), table)


def downgrade() -> None:
    """Back to the indexes that were there from the start."""
    for table, columns in KEPT:
        op.create_index(_name(table, columns), table, list(columns), if_not_exists=True)
    for name, table, old, new in REPLACED:
        if new:
            op.drop_index(_name(table, new), table, if_exists=True)
        op.create_index(name, table, list(old))
    op.drop_column("feeds", "fingerprinted")
    op.drop_column("feeds", "last_digest")
    for table in ROSTER:
        op.drop_column(table, "fingerprint")


def _name(table: str, columns: tuple[str, ...]) -> str:
    return f"ix_{table}_{'_'.join(columns)}"


def _has_rows(table: str) -> bool:
    return op.get_bind().scalar(sa.text(f"SELECT EXISTS (SELECT FROM {table})")) is True  # noqa: S608  (names above)
