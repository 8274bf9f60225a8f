"""The first tables."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:

    op.create_table(
        "academic_sessions",
        sa.Column("sourced_id", sa.Text(collation="C"), nullable=False),
        sa.Column("feed_id", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(collation="C"), nullable=False),
        sa.Column("date_last_modified", postgresql.TIMESTAMP(timezone=True, precision=3), nullable=False),
        sa.Column("metadata", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("title", sa.Text(collation="C"), nullable=False),
        sa.Column("start_date", sa.Date(), nullable=False),
        sa.Column("end_date", sa.Date(), nullable=False),
        sa.Column("type", sa.Text(collation="C"), nullable=False),
        sa.Column("parent_id", sa.Text(collation="C"), nullable=True),
        sa.Column("school_year", sa.Text(collation="C"), nullable=False),
        sa.CheckConstraint("status IN ('active', 'tobedeleted')", name=op.f("ck_academic_sessions_status")),
        sa.PrimaryKeyConstraint("sourced_id", name=op.f("pk_academic_sessions")),
    )
    op.create_index(
        op.f("ix_academic_sessions_date_last_modified_sourced_id"),
        "academic_sessions",
        ["date_last_modified", "sourced_id"],
        unique=False,
    )
    op.create_index(op.f("ix_academic_sessions_feed_id"), "academic_sessions", ["feed_id"], unique=False)
    op.create_index(op.f("ix_academic_sessions_parent_id"), "academic_sessions", ["parent_id"], unique=False)
    op.create_table(
        "class_terms",
        sa.Column("class_id", sa.Text(collation="C"), nullable=False),
        sa.Column("ordinal", sa.SmallInteger(), nullable=False),
        sa.Column("session_id", sa.Text(collation="C"), nullable=False),
        sa.PrimaryKeyConstraint("class_id", "ordinal", name=op.f("pk_class_terms")),
    )
    op.create_index(op.f("ix_class_terms_session_id_class_id"), "class_terms", ["session_id", "class_id"], unique=False)
    op.create_table(
        "classes",
        sa.Column("sourced_id", sa.Text(collation="C"), nullable=False),
        sa.Column("feed_id", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(collation="C"), nullable=False),
        sa.Column("date_last_modified", postgresql.TIMESTAMP(timezone=True, precision=3), nullable=False),
        sa.Column("metadata", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("title", sa.Text(collation="C"), nullable=False),
        sa.Column("class_code", sa.Text(collation="C"), nullable=True),
        sa.Column("class_type", sa.Text(collation="C"), nullable=True),
        sa.Column("location", sa.Text(collation="C"), nullable=True),
        sa.Column("grades", postgresql.ARRAY(sa.Text(collation="C")), nullable=True),
        sa.Column("course_id", sa.Text(collation="C"), nullable=False),
        sa.Column("school_id", sa.Text(collation="C"), nullable=False),
        sa.Column("subjects", postgresql.ARRAY(sa.Text(collation="C")), nullable=True),
        sa.Column("subject_codes", postgresql.ARRAY(sa.Text(collation="C")), nullable=True),
        sa.Column("periods", postgresql.ARRAY(sa.Text(collation="C")), nullable=True),
        sa.CheckConstraint("status IN ('active', 'tobedeleted')", name=op.f("ck_classes_status")),
        sa.PrimaryKeyConstraint("sourced_id", name=op.f("pk_classes")),
    )
    op.create_index(op.f("ix_classes_course_id_sourced_id"), "classes", ["course_id", "sourced_id"], unique=False)
    op.create_index(
        op.f("ix_classes_date_last_modified_sourced_id"), "classes", ["date_last_modified", "sourced_id"], unique=False
    )
    op.create_index(op.f("ix_classes_feed_id"), "classes", ["feed_id"], unique=False)
    op.create_index(op.f("ix_classes_school_id_sourced_id"), "classes", ["school_id", "sourced_id"], unique=False)
    op.create_table(
        "courses",
        sa.Column("sourced_id", sa.Text(collation="C"), nullable=False),
        sa.Column("feed_id", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(collation="C"), nullable=False),
        sa.Column("date_last_modified", postgresql.TIMESTAMP(timezone=True, precision=3), nullable=False),
        sa.Column("metadata", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("title", sa.Text(collation="C"), nullable=False),
        sa.Column("school_year_id", sa.Text(collation="C"), nullable=True),
        sa.Column("course_code", sa.Text(collation="C"), nullable=True),
        sa.Column("grades", postgresql.ARRAY(sa.Text(collation="C")), nullable=True),
        sa.Column("org_id", sa.Text(collation="C"), nullable=False),
        sa.Column("subjects", postgresql.ARRAY(sa.Text(collation="C")), nullable=True),
        sa.Column("subject_codes", postgresql.ARRAY(sa.Text(collation="C")), nullable=True),
        sa.CheckConstraint("status IN ('active', 'tobedeleted')", name=op.f("ck_courses_status")),
        sa.PrimaryKeyConstraint("sourced_id", name=op.f("pk_courses")),
    )
    op.create_index(
        op.f("ix_courses_date_last_modified_sourced_id"), "courses", ["date_last_modified", "sourced_id"], unique=False
    )
    op.create_index(op.f("ix_courses_feed_id"), "courses", ["feed_id"], unique=False)
    op.create_index(op.f("ix_courses_org_id_sourced_id"), "courses", ["org_id", "sourced_id"], unique=False)
    op.create_table(
        "demographics",
        sa.Column("sourced_id", sa.Text(collation="C"), nullable=False),
        sa.Column("feed_id", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(collation="C"), nullable=False),
        sa.Column("date_last_modified", postgresql.TIMESTAMP(timezone=True, precision=3), nullable=False),
        sa.Column("metadata", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("birth_date", sa.Date(), nullable=True),
        sa.Column("sex", sa.Text(collation="C"), nullable=True),
        sa.Column("american_indian_or_alaska_native", sa.Boolean(), nullable=True),
        sa.Column("asian", sa.Boolean(), nullable=True),
        sa.Column("black_or_african_american", sa.Boolean(), nullable=True),
        sa.Column("native_hawaiian_or_other_pacific_islander", sa.Boolean(), nullable=True),
        sa.Column("white", sa.Boolean(), nullable=True),
        sa.Column("demographic_race_two_or_more_races", sa.Boolean(), nullable=True),
        sa.Column("hispanic_or_latino_ethnicity", sa.Boolean(), nullable=True),
        sa.Column("country_of_birth_code", sa.Text(collation="C"), nullable=True),
        sa.Column("state_of_birth_abbreviation", sa.Text(collation="C"), nullable=True),
        sa.Column("city_of_birth", sa.Text(collation="C"), nullable=True),
        sa.Column("public_school_residence_status", sa.Text(collation="C"), nullable=True),
        sa.CheckConstraint("status IN ('active', 'tobedeleted')", name=op.f("ck_demographics_status")),
        sa.PrimaryKeyConstraint("sourced_id", name=op.f("pk_demographics")),
    )
    op.create_index(
        op.f("ix_demographics_date_last_modified_sourced_id"),
        "demographics",
        ["date_last_modified", "sourced_id"],
        unique=False,
    )
    op.create_index(op.f("ix_demographics_feed_id"), "demographics", ["feed_id"], unique=False)
    op.create_table(
        "enrollments",
        sa.Column("sourced_id", sa.Text(collation="C"), nullable=False),
        sa.Column("feed_id", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(collation="C"), nullable=False),
        sa.Column("date_last_modified", postgresql.TIMESTAMP(timezone=True, precision=3), nullable=False),
        sa.Column("metadata", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("user_id", sa.Text(collation="C"), nullable=False),
        sa.Column("class_id", sa.Text(collation="C"), nullable=False),
        sa.Column("school_id", sa.Text(collation="C"), nullable=False),
        sa.Column("role", sa.Text(collation="C"), nullable=False),
        sa.Column("primary", sa.Boolean(), nullable=True),
        sa.Column("begin_date", sa.Date(), nullable=True),
        sa.Column("end_date", sa.Date(), nullable=True),
        sa.CheckConstraint("status IN ('active', 'tobedeleted')", name=op.f("ck_enrollments_status")),
        sa.PrimaryKeyConstraint("sourced_id", name=op.f("pk_enrollments")),
    )
    op.create_index(
        op.f("ix_enrollments_class_id_role_user_id"), "enrollments", ["class_id", "role", "user_id"], unique=False
    )
    op.create_index(
        op.f("ix_enrollments_date_last_modified_sourced_id"),
        "enrollments",
        ["date_last_modified", "sourced_id"],
        unique=False,
    )
    op.create_index(op.f("ix_enrollments_feed_id"), "enrollments", ["feed_id"], unique=False)
    op.create_index(
        op.f("ix_enrollments_school_id_sourced_id"), "enrollments", ["school_id", "sourced_id"], unique=False
    )
    op.create_index(
        op.f("ix_enrollments_user_id_role_class_id"), "enrollments", ["user_id", "role", "class_id"], unique=False
    )
    op.create_table(
        "feeds",
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("name", sa.Text(collation="C"), nullable=False),
        sa.Column("format", sa.Text(collation="C"), nullable=False),
        sa.Column("path", sa.Text(collation="C"), nullable=True),
        sa.Column("enabled", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("hold_tombstones_percent", sa.SmallInteger(), nullable=True),
        sa.Column("hold_changes_percent", sa.SmallInteger(), nullable=True),
        sa.Column(
            "created_at",
            postgresql.TIMESTAMP(timezone=True, precision=3),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_feeds")),
        sa.UniqueConstraint("name", name=op.f("uq_feeds_name")),
    )
    op.create_table(
        "orgs",
        sa.Column("sourced_id", sa.Text(collation="C"), nullable=False),
        sa.Column("feed_id", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(collation="C"), nullable=False),
        sa.Column("date_last_modified", postgresql.TIMESTAMP(timezone=True, precision=3), nullable=False),
        sa.Column("metadata", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("name", sa.Text(collation="C"), nullable=False),
        sa.Column("type", sa.Text(collation="C"), nullable=False),
        sa.Column("identifier", sa.Text(collation="C"), nullable=True),
        sa.Column("parent_id", sa.Text(collation="C"), nullable=True),
        sa.Column("district_id", sa.Text(collation="C"), nullable=True),
        sa.CheckConstraint("status IN ('active', 'tobedeleted')", name=op.f("ck_orgs_status")),
        sa.PrimaryKeyConstraint("sourced_id", name=op.f("pk_orgs")),
    )
    op.create_index(
        op.f("ix_orgs_date_last_modified_sourced_id"), "orgs", ["date_last_modified", "sourced_id"], unique=False
    )
    op.create_index(op.f("ix_orgs_district_id"), "orgs", ["district_id"], unique=False)
    op.create_index(op.f("ix_orgs_feed_id"), "orgs", ["feed_id"], unique=False)
    op.create_index(op.f("ix_orgs_parent_id"), "orgs", ["parent_id"], unique=False)
    op.create_table(
        "roster_state",
        sa.Column("singleton", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("as_of", postgresql.TIMESTAMP(timezone=True, precision=3), nullable=False),
        sa.Column("deletions_since", postgresql.TIMESTAMP(timezone=True, precision=3), nullable=False),
        sa.CheckConstraint("singleton", name=op.f("ck_roster_state_singleton")),
        sa.PrimaryKeyConstraint("singleton", name=op.f("pk_roster_state")),
    )
    op.create_table(
        "signing_keys",
        sa.Column("key_id", sa.Text(collation="C"), nullable=False),
        sa.Column("public_jwk", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("private_sealed", sa.LargeBinary(), nullable=False),
        sa.Column(
            "created_at",
            postgresql.TIMESTAMP(timezone=True, precision=3),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("retired_at", postgresql.TIMESTAMP(timezone=True, precision=3), nullable=True),
        sa.PrimaryKeyConstraint("key_id", name=op.f("pk_signing_keys")),
    )
    op.create_table(
        "user_agents",
        sa.Column("user_id", sa.Text(collation="C"), nullable=False),
        sa.Column("ordinal", sa.SmallInteger(), nullable=False),
        sa.Column("agent_id", sa.Text(collation="C"), nullable=False),
        sa.PrimaryKeyConstraint("user_id", "ordinal", name=op.f("pk_user_agents")),
    )
    op.create_index(op.f("ix_user_agents_agent_id"), "user_agents", ["agent_id"], unique=False)
    op.create_table(
        "user_profiles",
        sa.Column("user_id", sa.Text(collation="C"), nullable=False),
        sa.Column("profile_id", sa.Text(collation="C"), nullable=False),
        sa.Column("profile_type", sa.Text(collation="C"), nullable=False),
        sa.Column("vendor_id", sa.Text(collation="C"), nullable=False),
        sa.Column("application_id", sa.Text(collation="C"), nullable=True),
        sa.Column("description", sa.Text(collation="C"), nullable=True),
        sa.Column("credentials", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.PrimaryKeyConstraint("user_id", "profile_id", name=op.f("pk_user_profiles")),
    )
    op.create_table(
        "user_roles",
        sa.Column("user_id", sa.Text(collation="C"), nullable=False),
        sa.Column("ordinal", sa.SmallInteger(), nullable=False),
        sa.Column("org_id", sa.Text(collation="C"), nullable=False),
        sa.Column("role", sa.Text(collation="C"), nullable=False),
        sa.Column("role_type", sa.Text(collation="C"), nullable=False),
        sa.Column("begin_date", sa.Date(), nullable=True),
        sa.Column("end_date", sa.Date(), nullable=True),
        sa.Column("profile_id", sa.Text(collation="C"), nullable=True),
        sa.Column("origin", sa.Text(collation="C"), nullable=False),
        sa.CheckConstraint("origin IN ('export', 'enrollment')", name=op.f("ck_user_roles_origin")),
        sa.CheckConstraint("role_type IN ('primary', 'secondary')", name=op.f("ck_user_roles_role_type")),
        sa.PrimaryKeyConstraint("user_id", "ordinal", name=op.f("pk_user_roles")),
    )
    op.create_index(
        op.f("ix_user_roles_org_id_role_user_id"), "user_roles", ["org_id", "role", "user_id"], unique=False
    )
    op.create_index(op.f("ix_user_roles_role_user_id"), "user_roles", ["role", "user_id"], unique=False)
    op.create_table(
        "users",
        sa.Column("sourced_id", sa.Text(collation="C"), nullable=False),
        sa.Column("feed_id", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(collation="C"), nullable=False),
        sa.Column("date_last_modified", postgresql.TIMESTAMP(timezone=True, precision=3), nullable=False),
        sa.Column("metadata", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("user_master_identifier", sa.Text(collation="C"), nullable=True),
        sa.Column("username", sa.Text(collation="C"), nullable=True),
        sa.Column("user_ids", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("enabled_user", sa.Boolean(), nullable=False),
        sa.Column("given_name", sa.Text(collation="C"), nullable=False),
        sa.Column("family_name", sa.Text(collation="C"), nullable=False),
        sa.Column("middle_name", sa.Text(collation="C"), nullable=True),
        sa.Column("preferred_first_name", sa.Text(collation="C"), nullable=True),
        sa.Column("preferred_middle_name", sa.Text(collation="C"), nullable=True),
        sa.Column("preferred_last_name", sa.Text(collation="C"), nullable=True),
        sa.Column("pronouns", sa.Text(collation="C"), nullable=True),
        sa.Column("primary_org_id", sa.Text(collation="C"), nullable=True),
        sa.Column("identifier", sa.Text(collation="C"), nullable=True),
        sa.Column("email", sa.Text(collation="C"), nullable=True),
        sa.Column("sms", sa.Text(collation="C"), nullable=True),
        sa.Column("phone", sa.Text(collation="C"), nullable=True),
        sa.Column("grades", postgresql.ARRAY(sa.Text(collation="C")), nullable=True),
        sa.CheckConstraint("status IN ('active', 'tobedeleted')", name=op.f("ck_users_status")),
        sa.PrimaryKeyConstraint("sourced_id", name=op.f("pk_users")),
    )
    op.create_index(
        op.f("ix_users_date_last_modified_sourced_id"), "users", ["date_last_modified", "sourced_id"], unique=False
    )
    op.create_index(op.f("ix_users_email"), "users", ["email"], unique=False)
    op.create_index(op.f("ix_users_family_name_sourced_id"), "users", ["family_name", "sourced_id"], unique=False)
    op.create_index(op.f("ix_users_feed_id"), "users", ["feed_id"], unique=False)
    op.create_index(op.f("ix_users_identifier"), "users", ["identifier"], unique=False)
    op.create_index(op.f("ix_users_username"), "users", ["username"], unique=False)
    op.create_table(
        "vendors",
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("name", sa.Text(collation="C"), nullable=False),
        sa.Column("email", sa.Text(collation="C"), nullable=False),
        sa.Column("enabled", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("grant_version", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column(
            "created_at",
            postgresql.TIMESTAMP(timezone=True, precision=3),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_vendors")),
        sa.UniqueConstraint("email", name=op.f("uq_vendors_email")),
    )
    op.create_table(
        "oauth_clients",
        sa.Column("client_id", sa.Text(collation="C"), nullable=False),
        sa.Column("vendor_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(collation="C"), nullable=False),
        sa.Column("secret_hash", sa.LargeBinary(), nullable=False),
        sa.Column("scopes", postgresql.ARRAY(sa.Text(collation="C")), nullable=False),
        sa.Column("enabled", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("version", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column(
            "created_at",
            postgresql.TIMESTAMP(timezone=True, precision=3),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["vendor_id"], ["vendors.id"], name=op.f("fk_oauth_clients_vendor_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("client_id", name=op.f("pk_oauth_clients")),
    )
    op.create_index(op.f("ix_oauth_clients_vendor_id"), "oauth_clients", ["vendor_id"], unique=False)
    op.create_table(
        "sync_runs",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("feed_id", sa.Integer(), nullable=False),
        sa.Column("format", sa.Text(collation="C"), nullable=False),
        sa.Column("source", sa.Text(collation="C"), nullable=False),
        sa.Column("started_at", postgresql.TIMESTAMP(timezone=True, precision=3), nullable=False),
        sa.Column("finished_at", postgresql.TIMESTAMP(timezone=True, precision=3), nullable=False),
        sa.Column("stamp", postgresql.TIMESTAMP(timezone=True, precision=3), nullable=True),
        sa.Column("outcome", sa.Text(collation="C"), nullable=False),
        sa.Column("counts", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("seconds", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("message", sa.Text(collation="C"), nullable=True),
        sa.Column("refused", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("kept_export", sa.Text(collation="C"), nullable=True),
        sa.CheckConstraint(
            "outcome IN ('done', 'unchanged', 'held', 'approved', 'discarded', 'refused', 'failed')",
            name=op.f("ck_sync_runs_outcome"),
        ),
        sa.ForeignKeyConstraint(["feed_id"], ["feeds.id"], name=op.f("fk_sync_runs_feed_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sync_runs")),
    )
    op.create_index(op.f("ix_sync_runs_feed_id"), "sync_runs", ["feed_id"], unique=False)
    op.create_table(
        "vendor_grants",
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("vendor_id", sa.Integer(), nullable=False),
        sa.Column("district_id", sa.Text(collation="C"), nullable=False),
        sa.Column("school_id", sa.Text(collation="C"), nullable=True),
        sa.ForeignKeyConstraint(
            ["vendor_id"], ["vendors.id"], name=op.f("fk_vendor_grants_vendor_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_vendor_grants")),
        sa.UniqueConstraint(
            "vendor_id",
            "district_id",
            "school_id",
            name=op.f("uq_vendor_grants_vendor_id_district_id_school_id"),
            postgresql_nulls_not_distinct=True,
        ),
    )
    op.create_table(
        "sync_refusals",
        sa.Column("run_id", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("file", sa.Text(collation="C"), nullable=False),
        sa.Column("line", sa.Integer(), nullable=True),
        sa.Column("header", sa.Text(collation="C"), nullable=True),
        sa.Column("value", sa.Text(collation="C"), nullable=True),
        sa.Column("reason", sa.Text(collation="C"), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["sync_runs.id"], name=op.f("fk_sync_refusals_run_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "number", name=op.f("pk_sync_refusals")),
    )


def downgrade() -> None:

    op.drop_table("sync_refusals")
    op.drop_table("vendor_grants")
    op.drop_index(op.f("ix_sync_runs_feed_id"), table_name="sync_runs")
    op.drop_table("sync_runs")
    op.drop_index(op.f("ix_oauth_clients_vendor_id"), table_name="oauth_clients")
    op.drop_table("oauth_clients")
    op.drop_table("vendors")
    op.drop_index(op.f("ix_users_username"), table_name="users")
    op.drop_index(op.f("ix_users_identifier"), table_name="users")
    op.drop_index(op.f("ix_users_feed_id"), table_name="users")
    op.drop_index(op.f("ix_users_family_name_sourced_id"), table_name="users")
    op.drop_index(op.f("ix_users_email"), table_name="users")
    op.drop_index(op.f("ix_users_date_last_modified_sourced_id"), table_name="users")
    op.drop_table("users")
    op.drop_index(op.f("ix_user_roles_role_user_id"), table_name="user_roles")
    op.drop_index(op.f("ix_user_roles_org_id_role_user_id"), table_name="user_roles")
    op.drop_table("user_roles")
    op.drop_table("user_profiles")
    op.drop_index(op.f("ix_user_agents_agent_id"), table_name="user_agents")
    op.drop_table("user_agents")
    op.drop_table("signing_keys")
    op.drop_table("roster_state")
    op.drop_index(op.f("ix_orgs_parent_id"), table_name="orgs")
    op.drop_index(op.f("ix_orgs_feed_id"), table_name="orgs")
    op.drop_index(op.f("ix_orgs_district_id"), table_name="orgs")
    op.drop_index(op.f("ix_orgs_date_last_modified_sourced_id"), table_name="orgs")
    op.drop_table("orgs")
    op.drop_table("feeds")
    op.drop_index(op.f("ix_enrollments_user_id_role_class_id"), table_name="enrollments")
    op.drop_index(op.f("ix_enrollments_school_id_sourced_id"), table_name="enrollments")
    op.drop_index(op.f("ix_enrollments_feed_id"), table_name="enrollments")
    op.drop_index(op.f("ix_enrollments_date_last_modified_sourced_id"), table_name="enrollments")
    op.drop_index(op.f("ix_enrollments_class_id_role_user_id"), table_name="enrollments")
    op.drop_table("enrollments")
    op.drop_index(op.f("ix_demographics_feed_id"), table_name="demographics")
    op.drop_index(op.f("ix_demographics_date_last_modified_sourced_id"), table_name="demographics")
    op.drop_table("demographics")
    op.drop_index(op.f("ix_courses_org_id_sourced_id"), table_name="courses")
    op.drop_index(op.f("ix_courses_feed_id"), table_name="courses")
    op.drop_index(op.f("ix_courses_date_last_modified_sourced_id"), table_name="courses")
    op.drop_table("courses")
    op.drop_index(op.f("ix_classes_school_id_sourced_id"), table_name="classes")
    op.drop_index(op.f("ix_classes_feed_id"), table_name="classes")
    op.drop_index(op.f("ix_classes_date_last_modified_sourced_id"), table_name="classes")
    op.drop_index(op.f("ix_classes_course_id_sourced_id"), table_name="classes")
    op.drop_table("classes")
    op.drop_index(op.f("ix_class_terms_session_id_class_id"), table_name="class_terms")
    op.drop_table("class_terms")
    op.drop_index(op.f("ix_academic_sessions_parent_id"), table_name="academic_sessions")
    op.drop_index(op.f("ix_academic_sessions_feed_id"), table_name="academic_sessions")
    op.drop_index(op.f("ix_academic_sessions_date_last_modified_sourced_id"), table_name="academic_sessions")
    op.drop_table("academic_sessions")
