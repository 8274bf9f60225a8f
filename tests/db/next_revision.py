"""A revision after the newest one, for tests of upgrades."""

from __future__ import annotations

from pathlib import Path

from roster_service.roster.revisions import FOLDERS

REVISION = '''"""A revision of the tests."""

from alembic import op

revision = "of_the_tests"
down_revision = "{before}"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Takes the lock that nobody may read beside."""
    op.execute("ALTER TABLE orgs ADD COLUMN of_the_tests text")
'''


def add_revision(folder: Path, before: str) -> tuple[Path, ...]:
    """Writes the revision to `folder`; what is to take the place of `revisions.FOLDERS`."""
    (folder / "of_the_tests.py").write_text(REVISION.format(before=before))
    return (*FOLDERS, folder)
