"""Functions that hold what a worker knows of a caller against what the database says now."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

# Both run as the owner of the accounts, as `admit_client` does, and look at the same facts.
CLIENT_STANDS = """
CREATE FUNCTION client_stands(
    client text, secret_version numeric, rights_version numeric, signed_by text,
    known_vendor integer, known_revision bigint, known_as_of timestamptz, known_deletions_since timestamptz
) RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM oauth_clients asking JOIN vendors found ON found.id = asking.vendor_id CROSS JOIN roster_state state
        WHERE asking.client_id = client AND asking.enabled AND asking.version = secret_version
        AND found.enabled AND found.grant_version = rights_version AND found.id = known_vendor
        AND EXISTS (SELECT FROM signing_keys WHERE key_id = signed_by AND (retired_at IS NULL OR retired_at > now()))
        AND (state.revision, state.as_of, state.deletions_since)
            = (known_revision, known_as_of, known_deletions_since)
    );
END
$$
"""
# Who is not as they are known to be may see nothing for the rest of the transaction.
READMIT_CLIENT = """
CREATE FUNCTION readmit_client(
    client text, secret_version numeric, rights_version numeric, signed_by text, guardians boolean,
    known_vendor integer, known_revision bigint, known_as_of timestamptz, known_deletions_since timestamptz,
    known_opening text
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
BEGIN
    PERFORM FROM admit_client(client, secret_version, rights_version, signed_by, guardians) found
    WHERE (found.vendor, found.revision, found.as_of, found.deletions_since, found.opening)
        = (known_vendor, known_revision, known_as_of, known_deletions_since, known_opening);
    IF FOUND THEN
        RETURN true;
    END IF;
    PERFORM set_sight('{{}}', '{{}}', false);
    RETURN false;
END
$$
"""
FUNCTIONS = {
    "client_stands(text, numeric, numeric, text, integer, bigint, timestamptz, timestamptz)": CLIENT_STANDS,
    "readmit_client(text, numeric, numeric, text, boolean, integer, bigint, timestamptz, timestamptz, text)": (
        READMIT_CLIENT
    ),
}


def upgrade() -> None:
    """Makes them; the role that serves may call them after the migrations."""
    schema = op.get_bind().scalar(sa.text("SELECT quote_ident(current_schema())"))
    for signature, body in FUNCTIONS.items():
        op.execute(body.format(schema=schema))
        op.execute(f"REVOKE ALL ON FUNCTION {signature} FROM PUBLIC")


def downgrade() -> None:
    """Back to asking anew."""
    for signature in FUNCTIONS:
        op.execute(f"DROP FUNCTION {signature}")
