"""Creates the tables, the collation of searches, and the rows that they begin with."""

from pathlib import Path

import sqlalchemy as sa
from alembic import op

from roster_service.errors import DatabaseUnavailableError

revision = "1_schema"
down_revision = None
branch_labels = None
depends_on = None

TABLES = Path(__file__).with_suffix(".sql")


def upgrade() -> None:
    """Searches ignore case beyond ASCII, which needs a Unicode collation: the built-in one (PostgreSQL 17 and newer),
    else ICU's. Raises DatabaseUnavailableError if the server has neither."""
    known = op.get_bind().scalars(sa.text("SELECT collname FROM pg_collation")).all()
    if "pg_c_utf8" in known:
        op.execute("CREATE COLLATION roster_nocase (provider = builtin, locale = 'C.UTF-8')")
    elif "und-x-icu" in known:
        op.execute("CREATE COLLATION roster_nocase (provider = icu, locale = 'und')")
    else:
        raise DatabaseUnavailableError("this PostgreSQL has neither a built-in Unicode collation (17+) nor ICU")
    op.execute(TABLES.read_text(encoding="utf-8"))
    op.execute("INSERT INTO roster_state (revision, as_of, deletions_since) VALUES (0, 'epoch', now())")
    op.execute("INSERT INTO vendor_defaults DEFAULT VALUES")
