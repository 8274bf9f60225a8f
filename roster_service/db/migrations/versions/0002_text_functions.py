"""Text functions, and the one row of the roster's state."""

import sqlalchemy as sa
from alembic import op

from roster_service.errors import DatabaseUnavailableError

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# One segment of a URL: every character that RFC 3986 reserves becomes %XX. The plain ids, nearly all, never get here.
HREF_ESCAPE = r"""
CREATE FUNCTION href_escape(id text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT string_agg(
        CASE WHEN piece ~ '^[A-Za-z0-9._~-]$' THEN piece
        ELSE upper(regexp_replace(encode(convert_to(piece, 'UTF8'), 'hex'), '(..)', '%\1', 'g')) END,
        '' ORDER BY place)
    FROM regexp_split_to_table(id, '') WITH ORDINALITY AS pieces (piece, place)
$$
"""


def upgrade() -> None:
    """Lower-casing beyond ASCII needs a collation that knows Unicode: the built-in one (17+), else ICU's."""
    op.execute(HREF_ESCAPE)
    connection = op.get_bind()
    known = connection.scalars(sa.text("SELECT collname FROM pg_collation")).all()
    if "pg_c_utf8" in known:
        op.execute("CREATE COLLATION roster_nocase (provider = builtin, locale = 'C.UTF-8')")
    elif "und-x-icu" in known:
        op.execute("CREATE COLLATION roster_nocase (provider = icu, locale = 'und')")
    else:
        raise DatabaseUnavailableError("this PostgreSQL has neither a built-in Unicode collation (17+) nor ICU")
    op.execute("INSERT INTO roster_state (revision, as_of, deletions_since) VALUES (0, 'epoch', now())")


def downgrade() -> None:
    """Back to bare tables."""
    op.execute("DELETE FROM roster_state")
    op.execute("DROP COLLATION roster_nocase")
    op.execute("DROP FUNCTION href_escape(text)")
