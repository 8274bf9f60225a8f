"""The schema of a fresh database as `pg_dump` writes it, without what differs from one database to the next.

`python -m tests.db.schema_snapshot` writes `schema.sql` anew, for a reviewer to read what changed.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from importlib.metadata import distribution
from pathlib import Path

from roster_service.db.embedded_server import open_embedded
from roster_service.db.engine import make_engine
from roster_service.db.postgres_programs import INSTALLATION, WHEEL
from roster_service.db.roles import DatabaseRole, find_role, quote_name
from roster_service.roster.upgrades import upgrade

SNAPSHOT = Path(__file__).with_name("schema.sql")
PG_DUMP = Path(str(distribution(WHEEL).locate_file(INSTALLATION)), "bin", "pg_dump")
# Comments, the settings of the session that would load the dump, and the key that the dump is locked with.
NOISE = re.compile(r"^(--|SET |SELECT pg_catalog\.set_config|\\(un)?restrict )")


def read_schema(url: str) -> str:
    """The schema of the database at `url`; the roles that serve requests are called by their task."""
    engine = make_engine(url)
    try:
        with engine.connect() as connection:
            roles = {role: str(find_role(connection, role)) for role in DatabaseRole}
    finally:
        engine.dispose()
    dumped = subprocess.run(
        [PG_DUMP, "--schema-only", "--no-owner", f"--dbname={url}"], capture_output=True, text=True, check=True
    ).stdout
    kept = "\n".join(line for line in dumped.splitlines() if not NOISE.match(line))
    for role, name in roles.items():
        for spelled in (quote_name(name), name):
            for end in (";", " USING"):
                kept = kept.replace(f"TO {spelled}{end}", f"TO {role.value}_role{end}")
    return re.sub(r"\n{3,}", "\n\n", kept).strip() + "\n"


def main() -> None:
    """Writes the file, from a database that is made for it and thrown away."""
    with (
        tempfile.TemporaryDirectory(prefix="roster-schema-", ignore_cleanup_errors=True) as folder,
        open_embedded(Path(folder)) as url,
    ):
        engine = make_engine(url)
        upgrade(engine)
        engine.dispose()
        SNAPSHOT.write_text(read_schema(url))


if __name__ == "__main__":
    main()
