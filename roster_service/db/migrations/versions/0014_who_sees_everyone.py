"""What is known of a caller is held against the database in one look, and it is kept who may see every user."""

from importlib import import_module

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

# The one place that says under which facts a client stands. The planner puts its body into the queries of the functions
# below, which run as the owner of the accounts.
STANDING_CLIENT = """
CREATE FUNCTION standing_client(client text, secret_version numeric, rights_version numeric, signed_by text)
RETURNS TABLE (vendor integer, revision bigint, as_of timestamptz, deletions_since timestamptz)
LANGUAGE sql STABLE ROWS 1 BEGIN ATOMIC
    SELECT found.id, state.revision, state.as_of, state.deletions_since
    FROM oauth_clients asking JOIN vendors found ON found.id = asking.vendor_id CROSS JOIN roster_state state
    WHERE asking.client_id = client AND asking.enabled AND asking.version = secret_version
    AND found.enabled AND found.grant_version = rights_version
    AND EXISTS (SELECT FROM signing_keys WHERE key_id = signed_by AND (retired_at IS NULL OR retired_at > now()));
END
"""
STANDING = "standing_client(client, secret_version, rights_version, signed_by)"
GRANTED_DISTRICTS = "ARRAY(SELECT district_id FROM vendor_grants WHERE vendor_id = found.vendor AND school_id IS NULL)"
GRANTED_SCHOOLS = "ARRAY(SELECT school_id FROM vendor_grants WHERE vendor_id = found.vendor AND school_id IS NOT NULL)"

# What a list of grants opens, of one roster: in one statement, so that all of it is of the revision beside it.
OPENED = """
    SELECT state.revision, found.granted::text AS granted_orgs, (found.granted || found.above)::text AS shown_orgs,
        md5(concat_ws(' ', found.granted::text, found.above::text)) AS hash,
        {everyone} AS everyone, {but_guardians} AS everyone_but_guardians
    FROM roster_state state CROSS JOIN (
        SELECT ARRAY(
            SELECT sourced_id FROM orgs WHERE district_id = ANY (districts)
            UNION SELECT sourced_id FROM orgs WHERE sourced_id = ANY (schools) ORDER BY 1
        ) AS granted, ARRAY(
            SELECT DISTINCT district_id FROM orgs WHERE sourced_id = ANY (schools) AND district_id IS NOT NULL ORDER BY 1
        ) AS above
    ) found
"""
# Whether all users and demographics are open: every org is granted, and each of them has a role in one; for those who
# may not see guardians, one that is no guardian's. Too much to work out for a single request: then it counts as no.
EVERYONE = """
    CASE WHEN cardinality(found.granted) = (SELECT count(*) FROM orgs) THEN NOT EXISTS (
        SELECT FROM (SELECT sourced_id FROM users UNION ALL SELECT sourced_id FROM demographics) person WHERE NOT EXISTS (
            SELECT FROM user_roles held JOIN orgs org ON org.sourced_id = held.org_id
            WHERE held.user_id = person.sourced_id{but}
        )
    ) ELSE false END
"""
BUT_GUARDIANS = " AND held.role NOT IN ('guardian', 'parent', 'relative')"
KEY = "md5(concat_ws(' ', {districts}::text, {schools}::text))"
TOLD = """PERFORM set_config('roster.granted_orgs', sight.granted_orgs, true),
        set_config('roster.granted_districts', {districts}::text, true),
        set_config('roster.shown_orgs', sight.shown_orgs, true),
        set_config('roster.guardians', guardians::text, true),
        set_config('roster.everyone',
            (CASE WHEN guardians THEN sight.everyone ELSE sight.everyone_but_guardians END)::text, true)"""
SET_SIGHT = """
CREATE OR REPLACE FUNCTION set_sight(districts text[], schools text[], guardians boolean) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
DECLARE
    sight record;
BEGIN
    SELECT kept.* INTO sight FROM sights kept JOIN roster_state state ON state.revision = kept.revision
    WHERE kept.key = {key};
    IF NOT FOUND THEN
        SELECT opened.* INTO sight FROM ({opened}) opened;
    END IF;
    {told};
    RETURN md5(concat_ws(' ', sight.hash, guardians::text));
END
$$
"""
# What is kept of this roster already is not worked out again.
KEEP_SIGHT = """
CREATE OR REPLACE FUNCTION keep_sight(districts text[], schools text[]) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
    DELETE FROM sights kept WHERE kept.revision < (SELECT state.revision FROM roster_state state);
    INSERT INTO sights (key, revision, granted_orgs, shown_orgs, hash, everyone, everyone_but_guardians)
    SELECT {key}, opened.* FROM ({opened}) opened WHERE NOT EXISTS (SELECT FROM sights kept WHERE kept.key = {key})
    ON CONFLICT (key) DO UPDATE SET revision = excluded.revision, granted_orgs = excluded.granted_orgs,
        shown_orgs = excluded.shown_orgs, hash = excluded.hash,
        everyone = excluded.everyone, everyone_but_guardians = excluded.everyone_but_guardians
    WHERE sights.revision < excluded.revision;
$$
"""
ADMIT_CLIENT = """
CREATE FUNCTION admit_client(
    client text, secret_version numeric, rights_version numeric, signed_by text, guardians boolean,
    OUT vendor integer, OUT districts text[], OUT schools text[],
    OUT revision bigint, OUT as_of timestamptz, OUT deletions_since timestamptz, OUT opening text, OUT everyone boolean
) RETURNS SETOF record
LANGUAGE plpgsql ROWS 1 SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
BEGIN
    SELECT found.vendor, {granted_districts}, {granted_schools}, found.revision, found.as_of, found.deletions_since
    INTO vendor, districts, schools, revision, as_of, deletions_since FROM {standing} found;
    IF FOUND THEN
        opening := set_sight(districts, schools, guardians);
        everyone := current_setting('roster.everyone')::boolean;
        RETURN NEXT;
    END IF;
END
$$
"""
CLIENT_STANDS = """
CREATE OR REPLACE FUNCTION client_stands(
    client text, secret_version numeric, rights_version numeric, signed_by text,
    known_vendor integer, known_revision bigint, known_as_of timestamptz, known_deletions_since timestamptz
) RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM {standing} found WHERE (found.vendor, found.revision, found.as_of, found.deletions_since)
            = (known_vendor, known_revision, known_as_of, known_deletions_since)
    );
END
$$
"""
# What is kept of the caller's grants is found in the same look, as it nearly always is. Who is not as they are known to
# be may see nothing for the rest of the transaction.
READMIT_CLIENT = """
CREATE OR REPLACE FUNCTION readmit_client(
    client text, secret_version numeric, rights_version numeric, signed_by text, guardians boolean,
    known_vendor integer, known_revision bigint, known_as_of timestamptz, known_deletions_since timestamptz,
    known_opening text
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
DECLARE
    sight record;
BEGIN
    SELECT kept.*, own.districts INTO sight
    FROM {standing} found CROSS JOIN LATERAL (
        SELECT {granted_districts} AS districts, {granted_schools} AS schools OFFSET 0
    ) own JOIN sights kept ON kept.key = {own_key} AND kept.revision = found.revision
    WHERE (found.vendor, found.revision, found.as_of, found.deletions_since)
        = (known_vendor, known_revision, known_as_of, known_deletions_since)
    AND md5(concat_ws(' ', kept.hash, guardians::text)) = known_opening;
    IF FOUND THEN
        {told};
        RETURN true;
    END IF;
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
# The document of one record, for a caller with whole districts, in one look and without opening the roster: what the
# caller was granted is asked here, and held against the document as the policy of 0007 does.
RECALL_DOCUMENT = """
CREATE FUNCTION recall_document(
    client text, secret_version numeric, rights_version numeric, signed_by text, guardians boolean,
    known_vendor integer, known_revision bigint, known_as_of timestamptz, known_deletions_since timestamptz,
    shelf_key text, record text
) RETURNS TABLE (body text, district_id text, needs_guardians boolean)
LANGUAGE plpgsql STABLE ROWS 1 SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
#variable_conflict use_column
DECLARE
    granted text[];
BEGIN
    SELECT {granted_districts} INTO granted FROM {standing} found
    WHERE (found.vendor, found.revision, found.as_of, found.deletions_since)
        = (known_vendor, known_revision, known_as_of, known_deletions_since);
    RETURN QUERY SELECT kept.body, kept.district_id, kept.needs_guardians
    FROM shelves held JOIN documents kept ON kept.shelf = held.id
    WHERE held.key = shelf_key AND held.revision = known_revision AND kept.sourced_id = record
    AND kept.district_id = ANY (granted) AND (guardians OR NOT kept.needs_guardians);
END
$$
"""
# For the first lock, which sees no more orgs than the second one shows.
GRANTS_EVERY_ORG = """
CREATE FUNCTION grants_every_org(districts text[], schools text[]) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
    SELECT NOT EXISTS (
        SELECT FROM orgs WHERE (district_id = ANY (districts) OR sourced_id = ANY (schools)) IS NOT TRUE
    )
$$
"""
PLACE = "roster_service.db.migrations.versions"
ADMIT_ARGUMENTS = "admit_client(text, numeric, numeric, text, boolean)"
NEW = (
    "standing_client(text, numeric, numeric, text)",
    "grants_every_org(text[], text[])",
    "recall_document(text, numeric, numeric, text, boolean, integer, bigint, timestamptz, timestamptz, text, text)",
)

# As in 0004, but for the question whether everyone is open: it is asked once a statement, and then of no row.
POLICY = """
ALTER POLICY visible ON {table} USING (CASE WHEN {everyone}
    EXISTS (SELECT FROM user_roles held WHERE held.user_id = {table}.sourced_id)
THEN 1 ELSE 0 END <> 0)
"""
ASKED_ONCE = "(SELECT NULLIF(current_setting('roster.everyone', true), '')::boolean) OR"
PEOPLE = ("users", "demographics")


# What these functions were, and who made them: a migration stays as it was written.
FORMER = {
    "admit_client(text, numeric, numeric, text, boolean)": ("0004_the_second_lock", "ADMIT_CLIENT"),
    "client_stands(text, numeric, numeric, text, integer, bigint, timestamptz, timestamptz)": (
        "0008_known_callers",
        "CLIENT_STANDS",
    ),
    "readmit_client(text, numeric, numeric, text, boolean, integer, bigint, timestamptz, timestamptz, text)": (
        "0008_known_callers",
        "READMIT_CLIENT",
    ),
    "keep_sight(text[], text[])": ("0011_kept_sights", "KEEP_SIGHT"),
}


def upgrade() -> None:
    """Forgets the sights that are kept: they are kept anew. Nobody keeps one meanwhile."""
    op.execute("TRUNCATE sights")
    op.add_column("sights", sa.Column("everyone", sa.Boolean(), nullable=False))
    op.add_column("sights", sa.Column("everyone_but_guardians", sa.Boolean(), nullable=False))
    own = {"districts": "own.districts", "schools": "own.schools"}
    asked = {"districts": "districts", "schools": "schools"}
    unknown = OPENED.format(everyone="false", but_guardians="false")
    known = OPENED.format(everyone=EVERYONE.format(but=""), but_guardians=EVERYONE.format(but=BUT_GUARDIANS))
    parts = {
        "schema": _schema(),
        "standing": STANDING,
        "granted_districts": GRANTED_DISTRICTS,
        "granted_schools": GRANTED_SCHOOLS,
        "key": KEY.format(**asked),
        "own_key": KEY.format(**own),
    }
    op.execute(STANDING_CLIENT)
    op.execute(SET_SIGHT.format(**parts, opened=unknown, told=TOLD.format(**asked)))
    op.execute(KEEP_SIGHT.format(**parts, opened=known))
    op.execute(f"DROP FUNCTION {ADMIT_ARGUMENTS}")
    op.execute(ADMIT_CLIENT.format(**parts))
    op.execute(CLIENT_STANDS.format(**parts))
    op.execute(READMIT_CLIENT.format(**parts, told=TOLD.format(districts="sight.districts")))
    op.execute(GRANTS_EVERY_ORG.format(**parts))
    op.execute(RECALL_DOCUMENT.format(**parts))
    for signature in (ADMIT_ARGUMENTS, *NEW):
        op.execute(f"REVOKE ALL ON FUNCTION {signature} FROM PUBLIC")
    for table in PEOPLE:
        op.execute(POLICY.format(table=table, everyone=ASKED_ONCE))


def downgrade() -> None:
    """Asks of each user again."""
    for table in PEOPLE:
        op.execute(POLICY.format(table=table, everyone=""))
    role = op.get_bind().scalar(sa.text("SELECT quote_ident(serving_role) FROM roster_state"))
    kept = import_module(f"{PLACE}.0011_kept_sights")
    parts = {"schema": _schema(), "key": kept.KEY, "opened": kept.OPENED}
    op.execute(kept.SET_SIGHT.format(**parts))
    for signature, (migration, name) in FORMER.items():
        op.execute(f"DROP FUNCTION {signature}")
        op.execute(getattr(import_module(f"{PLACE}.{migration}"), name).format(**parts))
        op.execute(f"REVOKE ALL ON FUNCTION {signature} FROM PUBLIC")
        if role is not None:
            op.execute(f"GRANT EXECUTE ON FUNCTION {signature} TO {role}")
    for signature in NEW:
        op.execute(f"DROP FUNCTION {signature}")
    op.execute("TRUNCATE sights")
    op.drop_column("sights", "everyone")
    op.drop_column("sights", "everyone_but_guardians")


def _schema() -> str:
    return str(op.get_bind().scalar(sa.text("SELECT quote_ident(current_schema())")))
