"""Row-level security on the roster, the functions that open it for a caller, and a grace for replaced secrets."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

# What a caller may see stands in three settings of the transaction. A setting that another transaction of the session
# had is empty afterwards, not absent; both read as NULL, and then no row is visible. The subqueries are uncorrelated,
# so each is evaluated once a statement and compared by hash.
SIGHT = {
    "granted": "(SELECT unnest(NULLIF(current_setting('roster.granted_orgs', true), '')::text[]))",
    "shown": "(SELECT unnest(NULLIF(current_setting('roster.shown_orgs', true), '')::text[]))",
    "guardians": "(SELECT NULLIF(current_setting('roster.guardians', true), '')::boolean)",
}

# The planner would guess that every condition halves the rows, though the statement's own have left only visible ones;
# said as a comparison, it guesses that nearly all pass, and goes on walking an index for a page.
POLICY = "CREATE POLICY visible ON {table} FOR SELECT USING (CASE WHEN {condition} THEN 1 ELSE 0 END <> 0)"

# A policy that reads another table of the roster gets its rows through that table's own policy.
POLICIES = {
    "orgs": "sourced_id IN {shown}",
    "academic_sessions": "feed_id IN (SELECT org.feed_id FROM orgs org)",
    "courses": "org_id IN {shown} OR EXISTS (SELECT FROM classes taught WHERE taught.course_id = courses.sourced_id)",
    "classes": "school_id IN {granted}",
    "class_terms": "EXISTS (SELECT FROM classes taught WHERE taught.sourced_id = class_terms.class_id)",
    "user_roles": "org_id IN {granted} AND (role NOT IN ('guardian', 'parent', 'relative') OR {guardians})",
    "users": "EXISTS (SELECT FROM user_roles held WHERE held.user_id = users.sourced_id)",
    "demographics": "EXISTS (SELECT FROM user_roles held WHERE held.user_id = demographics.sourced_id)",
    "user_profiles": "EXISTS (SELECT FROM user_roles held WHERE held.user_id = user_profiles.user_id)",
    "user_agents": "EXISTS (SELECT FROM user_roles held WHERE held.user_id = user_agents.user_id)"
    " AND EXISTS (SELECT FROM user_roles held WHERE held.user_id = user_agents.agent_id)",
    "enrollments": "EXISTS (SELECT FROM classes taught WHERE taught.sourced_id = enrollments.class_id)"
    " AND EXISTS (SELECT FROM user_roles held WHERE held.user_id = enrollments.user_id) AND school_id IN {granted}",
}

# These run as the tables' owner: they read what the serving role may not. Names are looked up in the service's schema.
SET_SIGHT = """
CREATE FUNCTION set_sight(districts text[], schools text[], guardians boolean) RETURNS text
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
    PERFORM set_config('roster.granted_orgs', granted::text, true);
    PERFORM set_config('roster.shown_orgs', (granted || above)::text, true);
    PERFORM set_config('roster.guardians', guardians::text, true);
    RETURN md5(concat_ws(' ', granted::text, above::text, guardians::text));
END
$$
"""
ADMIT_CLIENT = """
CREATE FUNCTION admit_client(
    client text, secret_version numeric, rights_version numeric, signed_by text, guardians boolean,
    OUT vendor integer, OUT districts text[], OUT schools text[],
    OUT revision bigint, OUT as_of timestamptz, OUT deletions_since timestamptz, OUT opening text
) RETURNS SETOF record
LANGUAGE plpgsql ROWS 1 SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
BEGIN
    SELECT found.id,
        ARRAY(SELECT district_id FROM vendor_grants WHERE vendor_id = found.id AND school_id IS NULL),
        ARRAY(SELECT school_id FROM vendor_grants WHERE vendor_id = found.id AND school_id IS NOT NULL),
        state.revision, state.as_of, state.deletions_since
    INTO vendor, districts, schools, revision, as_of, deletions_since
    FROM oauth_clients asking JOIN vendors found ON found.id = asking.vendor_id CROSS JOIN roster_state state
    WHERE asking.client_id = client AND asking.enabled AND asking.version = secret_version
    AND found.enabled AND found.grant_version = rights_version
    AND EXISTS (SELECT FROM signing_keys WHERE key_id = signed_by AND (retired_at IS NULL OR retired_at > now()));
    IF FOUND THEN
        opening := set_sight(districts, schools, guardians);
        RETURN NEXT;
    END IF;
END
$$
"""
FIND_KEY_HOLDER = """
CREATE FUNCTION find_key_holder(
    hash bytea,
    OUT vendor integer, OUT key_prefix text, OUT enabled boolean, OUT grant_version integer,
    OUT districts text[], OUT schools text[], OUT flags text[],
    OUT requests_per_second integer, OUT burst integer, OUT requests_per_day integer, OUT live_keys text[],
    OUT revision bigint, OUT as_of timestamptz, OUT deletions_since timestamptz
) RETURNS SETOF record
LANGUAGE plpgsql STABLE ROWS 1 SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT found.id, asking.prefix, found.enabled, found.grant_version,
        ARRAY(SELECT district_id FROM vendor_grants WHERE vendor_id = found.id AND school_id IS NULL),
        ARRAY(SELECT school_id FROM vendor_grants WHERE vendor_id = found.id AND school_id IS NOT NULL),
        found.flags, found.requests_per_second, found.burst, found.requests_per_day,
        ARRAY(SELECT key_id FROM signing_keys WHERE retired_at IS NULL OR retired_at > now()),
        state.revision, state.as_of, state.deletions_since
    FROM api_keys asking JOIN vendors found ON found.id = asking.vendor_id CROSS JOIN roster_state state
    WHERE asking.key_hash = hash AND (asking.expires_at IS NULL OR asking.expires_at > now());
END
$$
"""
FUNCTIONS = {
    "set_sight(text[], text[], boolean)": SET_SIGHT,
    "admit_client(text, numeric, numeric, text, boolean)": ADMIT_CLIENT,
    "find_key_holder(bytea)": FIND_KEY_HOLDER,
}


def upgrade() -> None:
    """Locks the tables for everybody but their owner; the role that serves is made after the migrations."""
    op.add_column("roster_state", sa.Column("serving_role", sa.Text(collation="C")))
    op.add_column("oauth_clients", sa.Column("previous_secret_hash", sa.LargeBinary()))
    op.add_column("oauth_clients", sa.Column("previous_secret_ends_at", postgresql.TIMESTAMP(True, 3)))
    for table, condition in POLICIES.items():
        op.execute(POLICY.format(table=table, condition=condition.format(**SIGHT)))
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
    schema = op.get_bind().scalar(sa.text("SELECT quote_ident(current_schema())"))
    for signature, body in FUNCTIONS.items():
        op.execute(body.format(schema=schema))
        op.execute(f"REVOKE ALL ON FUNCTION {signature} FROM PUBLIC")


def downgrade() -> None:
    """Back to one lock."""
    for signature in FUNCTIONS:
        op.execute(f"DROP FUNCTION {signature}")
    for table in POLICIES:
        op.execute(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY")
        op.execute(f"DROP POLICY visible ON {table}")
    op.drop_column("oauth_clients", "previous_secret_ends_at")
    op.drop_column("oauth_clients", "previous_secret_hash")
    op.drop_column("roster_state", "serving_role")
