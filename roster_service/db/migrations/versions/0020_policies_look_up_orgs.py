"""The policies look up the org of a row, by the grants themselves.

They read a list of all granted orgs before, which PostgreSQL spells out anew for each condition of a statement: with 668
orgs, 0.25 ms for each of a dozen conditions, whatever the statement finds.
"""

from importlib import import_module

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

DISTRICTS = "(SELECT NULLIF(current_setting('roster.granted_districts', true), '')::text[])::text[]"
SCHOOLS = "(SELECT NULLIF(current_setting('roster.granted_schools', true), '')::text[])::text[]"
ABOVE = "(SELECT NULLIF(current_setting('roster.districts_above', true), '')::text[])::text[]"
GUARDIANS = "(SELECT NULLIF(current_setting('roster.guardians', true), '')::boolean)"
GRANTED = (
    "EXISTS (SELECT FROM orgs granted WHERE granted.sourced_id = {org}"
    f" AND (granted.district_id = ANY ({DISTRICTS}) OR granted.sourced_id = ANY ({SCHOOLS})))"
)

# As in 0004, a policy is said as a comparison. A policy that reads another table of the roster gets its rows through
# that table's own policy, and of orgs those that are shown.
POLICY = "ALTER POLICY visible ON {table} USING (CASE WHEN {condition} THEN 1 ELSE 0 END <> 0)"
TAUGHT = "EXISTS (SELECT FROM classes taught WHERE taught.sourced_id = enrollments.class_id)"
HELD = "EXISTS (SELECT FROM user_roles held WHERE held.user_id = enrollments.user_id)"
POLICIES = {
    "orgs": f"district_id = ANY ({DISTRICTS}) OR sourced_id = ANY ({SCHOOLS}) OR sourced_id = ANY ({ABOVE})",
    "courses": "EXISTS (SELECT FROM orgs shown WHERE shown.sourced_id = courses.org_id)"
    " OR EXISTS (SELECT FROM classes taught WHERE taught.course_id = courses.sourced_id)",
    "classes": GRANTED.format(org="classes.school_id"),
    "user_roles": f"{GRANTED.format(org='user_roles.org_id')}"
    f" AND (role NOT IN ('guardian', 'parent', 'relative') OR {GUARDIANS})",
    "enrollments": f"{GRANTED.format(org='enrollments.school_id')} AND {TAUGHT} AND {HELD}",
}

# Three lines more than 0014 tells: the schools, and the districts above them, which are shown by themselves.
SCHOOLS_TOLD = """,
        set_config('roster.granted_schools', {schools}::text, true),
        set_config('roster.districts_above', (
            ARRAY(SELECT DISTINCT district_id FROM orgs WHERE sourced_id = ANY ({schools}) AND district_id IS NOT NULL)
        )::text, true)"""
BEFORE = import_module("roster_service.db.migrations.versions.0014_who_sees_everyone")
FORMER = import_module("roster_service.db.migrations.versions.0004_the_second_lock")


def upgrade() -> None:
    """Tells both, then has the policies read them."""
    _tell(SCHOOLS_TOLD)
    for table, condition in POLICIES.items():
        op.execute(POLICY.format(table=table, condition=condition))


def downgrade() -> None:
    """Back to lists of all granted orgs."""
    for table in POLICIES:
        op.execute(POLICY.format(table=table, condition=FORMER.POLICIES[table].format(**FORMER.SIGHT)))
    _tell("")


def _tell(more: str) -> None:
    asked = {"districts": "districts", "schools": "schools"}
    own = {"districts": "own.districts", "schools": "own.schools"}
    schema = op.get_bind().scalar(sa.text("SELECT quote_ident(current_schema())"))
    parts = {
        "schema": schema,
        "standing": BEFORE.STANDING,
        "granted_districts": BEFORE.GRANTED_DISTRICTS,
        "granted_schools": BEFORE.GRANTED_SCHOOLS,
        "key": BEFORE.KEY.format(**asked),
        "own_key": BEFORE.KEY.format(**own),
    }
    unknown = BEFORE.OPENED.format(everyone="false", but_guardians="false")
    op.execute(BEFORE.SET_SIGHT.format(**parts, opened=unknown, told=(BEFORE.TOLD + more).format(**asked)))
    sight = {"districts": "sight.districts", "schools": "sight.schools"}
    readmit = BEFORE.READMIT_CLIENT.replace("own.districts INTO sight", "own.districts, own.schools INTO sight")
    op.execute(readmit.format(**parts, told=(BEFORE.TOLD + more).format(**sight)))
